// The header: a line on each study, and the title.

import {$, make} from "./dom.js";
import {drives, studies} from "./state.js";
import {STANDINGS} from "./words.js";

export function showStudies() {
  const nodes = [...studies.values()].map((study) => {
    const words = [STANDINGS[study.standing], `${study.done} of ${study.recordings} measurements done`];
    if (study.standing === "finished") words.push(`results in ${study.results}/`);
    const chips = [["simulated", "virtual clock"], ["virtual", "virtual drive"], ["reduced", "reduced protocol"]]
      .filter(([key]) => [...drives.values()].some((one) => one.study === study.name && one[key]))
      .map(([, label]) => make("span", {class: "chip"}, label));
    return make("div", {class: "study"}, make("h1", {}, study.title),
      make("p", {}, ...chips, words.join(" · ")));
  });
  if ($("studies").textContent !== nodes.map((one) => one.textContent).join("")) $("studies").replaceChildren(...nodes);
  document.title = [...studies.values()].map((one) => `${one.name}: ${STANDINGS[one.standing]}`).join(", ") + " – drivelab";
}
