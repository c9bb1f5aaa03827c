// The header: a line per study, and the title.

import {$, make} from "./dom.js";
import {drives, studies} from "./state.js";
import {STANDINGS} from "./words.js";

export function showStudies() {
  const nodes = [...studies.values()].map((study) => {
    const facts = [STANDINGS[study.standing], `${study.done} of ${study.recordings} measurements done`];
    if (study.standing === "finished") facts.push(`results in ${study.results}/`);
    const chips = [["simulated", "virtual clock"], ["virtual", "virtual drive"], ["reduced", "reduced protocol"]]
      .filter(([key]) => [...drives.values()].some((drive) => drive.study === study.name && drive[key]))
      .map(([, label]) => make("span", {class: "chip"}, label));
    return make("div", {class: "study"}, make("h1", {}, study.title),
      make("p", {}, ...chips, facts.join(" · ")));
  });
  if ($("studies").textContent !== nodes.map((node) => node.textContent).join("")) $("studies").replaceChildren(...nodes);
  document.title = [...studies.values()].map((study) => `${study.name}: ${STANDINGS[study.standing]}`).join(", ") + " – drivelab";
}
