// The page: shows the server's events as gauges, chart, steady state and log.

import {showDrives} from "./cards.js";
import {$, put} from "./dom.js";
import {showStudies} from "./header.js";
import {take} from "./news.js";
import {setServerTime} from "./state.js";
import {showSteady} from "./steady.js";
import {showChart} from "./strip.js";
import {clock} from "./words.js";

let lastNews = 0, lostSince = null;

function show() { showStudies(); showDrives(); showSteady(); showChart(); }

function connect() {
  const source = new EventSource("/events");
  const news = (isSnapshot) => (event) => {
    lastNews = Date.now();
    lostSince = null;
    $("link").dataset.state = "live";
    put($("link"), "live");
    const body = JSON.parse(event.data);
    setServerTime(body.now_s);
    take(body, isSnapshot);
    show();
  };
  source.addEventListener("snapshot", news(true));
  source.addEventListener("news", news(false));
  source.addEventListener("error", () => {
    lostSince ||= Date.now() / 1000;
    $("link").dataset.state = "lost";
    const closed = source.readyState === EventSource.CLOSED; // the browser gives up if the server refuses
    put($("link"), `connection lost at ${clock(lostSince)}, trying again${closed && lastNews ? "; or open the address that drivelab printed" : ""}`);
    if (closed) setTimeout(connect, 2000);
  });
}
connect();
