// Take over, announce and log the server's news.

import {$, make, paint} from "./dom.js";
import {takePoints} from "./points.js";
import {colour, drives, hidden, studies} from "./state.js";
import {STANDINGS, clock} from "./words.js";

const MOST_LINES = 12, MOST_LOG = 200;

export function take(body, isSnapshot) {
  if (isSnapshot) $("log").replaceChildren();
  takePoints(body, isSnapshot);
  for (const study of body.studies) {
    const before = studies.get(study.name);
    studies.set(study.name, study);
    for (const drive of study.drives) {
      const key = `${study.name}/${drive.drive}`;
      announce(drives.get(key), drive);
      if (!drives.has(key) && drives.size >= MOST_LINES) hidden.add(key);
      drives.set(key, {...drive, key, study: study.name, order: drives.get(key)?.order ?? drives.size});
    }
    if (before && before.standing !== study.standing) say(`Study ${study.name}: ${STANDINGS[study.standing]}`);
  }
  log(body.lines);
}

function announce(before, now) {
  if (!before) return;
  if (before.standing !== now.standing) say(`${now.drive}: ${STANDINGS[now.standing]}${now.failure ? `, ${now.failure}` : ""}`);
  else if (before.stage !== now.stage || before.measurement !== now.measurement) say(`${now.drive}: ${now.stage}, ${now.measurement}`);
  else if (before.progress?.ended !== now.progress?.ended && now.progress?.ended) say(`${now.drive}: ${now.progress.ended}`);
}
function say(text) { $("announce").textContent = text; }

function log(lines) {
  const list = $("log"), atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 8;
  for (const [at, study, drive, text] of lines) {
    const known = drives.get(`${study}/${drive}`);
    const time = make("time", {datetime: new Date(at * 1000).toISOString()}, clock(at));
    const row = make("li", text.startsWith("failed") || text.startsWith("drivelab:") ? {class: "failed"} : {}, time, make("b", {}, drive), make("span", {}, text));
    list.append(known ? paint(row, colour(known)) : row);
  }
  while (list.childElementCount > MOST_LOG) list.firstElementChild.remove();
  if (atEnd) list.scrollTop = list.scrollHeight;
}
