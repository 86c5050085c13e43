"use strict";
// Draws what flow_map.svg draws, for the destination that is chosen. Text is set as text, never as
// markup; nothing is fetched; the policy in the head of the page allows this script alone.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const look = data.look;
  const byId = (name) => document.getElementById(name);
  const ask = byId("ask"), view = byId("view"), said = byId("said");
  const turned = Math.PI / 180;
  let chosen = data.start, listed = look.rows;

  const sorted = data.destinations
    .map((place, k) => ({ k, id: data.ids[place], name: data.names[place] }))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));

  function make(parent, tag, facts, words) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(facts)) made.setAttribute(name, String(value));
    if (words !== undefined) made.textContent = words;
    parent.appendChild(made);
    return made;
  }

  function apart(lat, lon, lats, lons) {
    const one = lat * turned, two = lats * turned, across = ((lons - lon) * turned) / 2;
    const part = Math.sin((two - one) / 2) ** 2 + Math.cos(one) * Math.cos(two) * Math.sin(across) ** 2;
    return 2 * data.earth * Math.asin(Math.sqrt(Math.min(1, part)));
  }

  function bearing(lat, lon, lats, lons) {
    const one = lat * turned, two = lats * turned, turn = (lons - lon) * turned;
    return Math.atan2(
      Math.sin(turn) * Math.cos(two),
      Math.cos(one) * Math.sin(two) - Math.sin(one) * Math.cos(two) * Math.cos(turn),
    );
  }

  function spot(lats, lons, edge) {
    const here = data.destinations[chosen], lat = data.lat[here], lon = data.lon[here];
    const far = (apart(lat, lon, lats, lons) * look.radius) / edge;
    const toward = bearing(lat, lon, lats, lons);
    return [look.size / 2 + far * Math.sin(toward), look.size / 2 - far * Math.cos(toward)];
  }

  function part(layer) {
    const here = data.destinations[chosen], out = [];
    for (let k = layer.first[chosen]; k < layer.first[chosen + 1]; k += 1) {
      const place = layer.origins[k];
      const located = data.lat[place] !== null && data.lat[here] !== null;
      const far = located ? apart(data.lat[here], data.lon[here], data.lat[place], data.lon[place]) : NaN;
      out.push({ place, id: data.ids[place], name: data.names[place], count: layer.counts[k], far });
    }
    return out;
  }

  function smallest(parts) {
    const known = parts.flat().filter((one) => Number.isFinite(one.far)).sort((a, b) => a.far - b.far);
    if (known.length === 0) return data.views[4];
    const all = known.reduce((sum, one) => sum + one.count, 0);
    let sum = 0;
    for (const one of known) {
      sum += one.count;
      if (sum >= (data.within - 1e-12) * all) return data.views.find((v) => v >= one.far) ?? data.views.at(-1);
    }
    return data.views.at(-1);
  }

  function scaled(parts) {
    const most = Math.max(1, ...parts.map((mine) => mine.reduce((top, one) => Math.max(top, one.count), 1)));
    const crowd = Math.max(1, ...parts.map((mine) => mine.length));
    return { most, largest: Math.min(look.largest, Math.max(5, look.crowd / Math.sqrt(crowd))) };
  }

  const radius = (count, scale) => Math.max(look.least, scale.largest * Math.sqrt(count / Math.max(scale.most, 4)));
  const shade = (count) => look.shades[look.breaks.filter((b) => count >= b).length - 1];

  function areas(root, mine, edge) {
    const known = new Map(mine.map((one) => [one.id, one])), shaded = new Set();
    for (const outline of data.outlines) {
      let path = "", inside = false;
      for (const ring of outline.rings) {
        const points = [];
        for (let k = 0; k < ring.length; k += 2) {
          const [x, y] = spot(ring[k], ring[k + 1], edge);
          inside ||= Math.hypot(x - look.size / 2, y - look.size / 2) <= look.radius;
          points.push(`${x.toFixed(1)},${y.toFixed(1)}`);
        }
        path += "M" + points.join("L") + (outline.closed ? "Z" : "");
      }
      if (!inside) continue;
      const n = outline.closed ? known.get(outline.id)?.count ?? 0 : 0;
      const drawn = make(root, "path", { d: path, fill: n ? shade(n) : "none", stroke: look.base });
      if (n) {
        drawn.setAttribute("class", "origin");
        make(drawn, "title", {}, `${known.get(outline.id).name}: ${n.toLocaleString("en")}`);
        shaded.add(outline.id);
      }
    }
    return shaded;
  }

  function panel(holder, layer, mine, edge, scale) {
    const half = look.size / 2;
    holder.replaceChildren();
    const root = make(holder, "svg", { viewBox: `0 0 ${look.size} ${look.size}`, "aria-hidden": "true" });
    const shown = areas(root, mine, edge);
    for (const share of look.rings) {
      make(root, "circle", { cx: half, cy: half, r: (look.radius * share).toFixed(1), fill: "none",
        stroke: share === 1 ? look.muted : look.base });
    }
    for (const one of [...mine].sort((a, b) => b.count - a.count)) {
      if (!(one.far <= edge) || shown.has(one.id)) continue;
      const [x, y] = spot(data.lat[one.place], data.lon[one.place], edge);
      const dot = make(root, "circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: radius(one.count, scale).toFixed(1),
        fill: look.colors[layer.name], stroke: look.paper, class: "origin", "fill-opacity": 0.75 });
      make(dot, "title", {}, `${one.name}: ${one.count.toLocaleString("en")}, ${one.far.toFixed(1)} ${data.unit}`);
    }
    for (const share of look.rings) {
      over(root, half + 4, half - look.radius * share + 15, `${(edge * share).toLocaleString("en")} ${data.unit === "km" ? "km" : "mi"}`);
    }
    make(root, "path", { d: `M${half},${half - 9}l9,9l-9,9l-9,-9z`, fill: "none", stroke: look.ink, "stroke-width": 2 });
    legend(scale).forEach(([r, words], k) => {
      const y = look.size - 20 - 26 * k;
      make(root, "circle", { cx: 20, cy: y, r: r.toFixed(1), fill: "none", stroke: look.ink });
      over(root, 44, y + 4, words).setAttribute("class", "size");
    });
  }

  function over(root, x, y, words) {
    return make(root, "text", { x, y: y.toFixed(1), fill: look.ink, "font-size": 13, "font-family": look.font,
      stroke: look.paper, "stroke-width": 3, "paint-order": "stroke" }, words);
  }

  function legend(scale) {
    const most = scale.most, middle = Math.round(most / 4);
    const small = Math.max(1, Math.floor(Math.max(most, 4) * (look.least / scale.largest) ** 2));
    const found = [[radius(most, scale), `${most.toLocaleString("en")} ${most > 1 ? "people" : "person"}`]];
    if (small < middle) found.push([radius(middle, scale), middle.toLocaleString("en")]);
    if (small < most) found.push([radius(1, scale), small === 1 ? "1" : `1 to ${small.toLocaleString("en")}`]);
    return found;
  }

  function facts(layer, mine, edge) {
    const people = (some) => some.reduce((sum, one) => sum + one.count, 0);
    const known = mine.filter((one) => Number.isFinite(one.far));
    const mean = known.reduce((sum, one) => sum + one.count * one.far, 0) / people(known);
    const lost = people(mine) - people(known), beyond = people(known.filter((one) => one.far > edge));
    const words = [`${layer.name}: ${people(mine).toLocaleString("en")} people from ` +
      `${mine.length.toLocaleString("en")} origins`];
    if (known.length) words.push(`mean distance ${mean.toFixed(1)} ${data.unit}`);
    if (beyond) words.push(`${beyond.toLocaleString("en")} beyond the view`);
    if (lost) words.push(`${lost.toLocaleString("en")} without coordinates`);
    return words.join(", ") + ".";
  }

  function table(parts) {
    const body = byId("rows"), all = new Map();
    parts.forEach((mine, k) => {
      for (const one of mine) {
        const row = all.get(one.place) ?? { name: one.name, far: one.far, counts: parts.map(() => 0) };
        row.counts[k] = one.count;
        all.set(one.place, row);
      }
    });
    const rows = [...all.values()].sort((a, b) => b.counts[0] - a.counts[0] || (b.counts[1] ?? 0) - (a.counts[1] ?? 0));
    body.replaceChildren();
    for (const row of rows.slice(0, listed)) {
      const line = body.insertRow(), name = document.createElement("th");
      name.scope = "row";
      name.textContent = row.name;
      line.appendChild(name);
      const far = Number.isFinite(row.far) ? row.far.toFixed(1) : "";
      for (const value of [far, ...row.counts.map((n) => n.toLocaleString("en"))]) {
        const cell = line.insertCell();
        cell.className = "n";
        cell.textContent = value;
      }
    }
    byId("all").hidden = rows.length <= listed;
    byId("more").textContent = rows.length > listed
      ? `${(rows.length - listed).toLocaleString("en")} more origins are not listed.` : "";
  }

  function draw() {
    const parts = data.layers.map(part);
    const edge = view.value === "fit" ? smallest(parts) : Number(view.value);
    const scale = scaled(parts);
    data.layers.forEach((layer, k) => panel(byId(`panel-${layer.name}`), layer, parts[k], edge, scale));
    table(parts);
    const name = data.names[data.destinations[chosen]];
    byId("which").textContent = name;
    said.textContent = `Destination ${name}. ` +
      data.layers.map((layer, k) => facts(layer, parts[k], edge)).join(" ");
  }

  function choose(k) {
    chosen = k;
    listed = look.rows;
    ask.value = data.names[data.destinations[k]];
    draw();
  }

  function search() {
    const words = ask.value.trim(), low = words.toLowerCase();
    if (!words) return;
    const alike = [(one) => one.id === words, (one) => one.name === words,
      (one) => one.name.toLowerCase().startsWith(low), (one) => one.name.toLowerCase().includes(low)];
    for (const fits of alike) {
      const found = sorted.filter((one) => fits(one));
      if (found.length) {
        choose(found[0].k);
        if (found.length > 1) said.textContent += ` ${found.length.toLocaleString("en")} ids fit; this is the first.`;
        return;
      }
    }
    said.textContent = `No destination has that id; ${data.names[data.destinations[chosen]]} is shown.`;
  }

  function step(by) {
    const at = sorted.findIndex((one) => one.k === chosen);
    choose(sorted[(at + by + sorted.length) % sorted.length].k);
  }

  const list = byId("ids");
  for (const one of sorted) {
    const option = document.createElement("option");
    option.value = one.name;
    list.appendChild(option);
  }
  byId("form").addEventListener("submit", (event) => { event.preventDefault(); search(); });
  ask.addEventListener("change", () => {  // an id was picked from the list
    const found = sorted.find((one) => one.name === ask.value);
    if (found && found.k !== chosen) choose(found.k);
  });
  view.addEventListener("change", draw);
  byId("all").addEventListener("click", () => { listed = Infinity; draw(); byId("rows").closest("div").focus(); });
  byId("before").addEventListener("click", () => step(-1));
  byId("after").addEventListener("click", () => step(1));
  byId("controls").hidden = false;
  choose(chosen);
})();
