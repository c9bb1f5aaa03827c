// The latest state of studies and drives, hidden drives, and the drives' colours and dashes.

import {seriesOfAll} from "./points.js";

// The same colours as in the report's figures: safe for colour-blind readers.
const COLOURS = ["#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"];
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

export const studies = new Map(), drives = new Map(), hidden = new Set(); // drives by STUDY/DRIVE
let offset = 0;

// The clocks of hosts differ.
export function setServerTime(now_s) { offset = now_s - Date.now() / 1000; }
export function serverTime() { return Date.now() / 1000 + offset; }

export function colour(drive) { return COLOURS[drive.order % COLOURS.length]; }
// Neighbours have different dashes, because equal curves hide each other. Drives of one colour differ too, up to 40 drives.
export function dash(drive) { return DASHES[(drive.order + Math.floor(drive.order / 20)) % DASHES.length]; }
export function name(drive) { return studies.size > 1 ? `${drive.study}: ${drive.drive}` : drive.drive; }
export function isShown(drive) { return !["waiting", "measured"].includes(drive.standing) || seriesOfAll(drive).length > 0; }
