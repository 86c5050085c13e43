"use strict";
// The studio works by forms; this adds the way in, uploads in pieces, progress of jobs, and copy buttons.

const enter = document.getElementById("enter");
if (enter && location.hash.length > 1) {
  document.getElementById("token").value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  enter.submit();
}

const here = document.querySelector("nav [aria-current]");
if (here) here.parentElement.parentElement.parentElement.scrollLeft = here.offsetLeft - 40;

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.classList.add("main");
    setTimeout(() => button.classList.remove("main"), 1200);
  });
}

for (const button of document.querySelectorAll("[data-insert]")) {
  button.addEventListener("click", () => {
    const box = document.getElementById(button.dataset.into);
    box.setRangeText(button.dataset.insert, box.selectionStart, box.selectionEnd, "end");
    box.focus();
  });
}

for (const form of document.forms) {
  form.addEventListener("submit", () => {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  });
}
addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("button[disabled]")) button.disabled = false;
});

for (const kind of document.querySelectorAll("[data-kind]")) {
  const numbers = () => ["numeric", "date"].includes(kind.value);
  const apply = () => {
    const column = kind.closest(".column").classList;
    column.toggle("of-n", numbers());
    column.toggle("of-l", !numbers());
  };
  kind.addEventListener("change", apply);
  apply();
}

async function watch(panel) {
  const stage = panel.querySelector("[data-stage]");
  const left = panel.querySelector("[data-left]");
  const bar = panel.querySelector("[data-share]");
  for (;;) {
    await new Promise((wake) => setTimeout(wake, 700));
    let facts;
    try {
      const answer = await fetch("/jobs/" + panel.dataset.job);
      if (!answer.ok) return;
      facts = await answer.json();
    } catch {
      continue;
    }
    if (facts.state !== "running") return location.replace(location.pathname);
    if (facts.more && panel.parentElement.querySelector("[data-first]") === null && panel.dataset.wait !== undefined) return location.reload();
    if (facts.stage && stage.textContent !== facts.stage) stage.textContent = facts.stage;
    left.textContent = facts.left ? document.body.dataset.left.replace("{}", facts.left) : "";
    if (facts.share !== null) bar.value = facts.share;
  }
}
for (const panel of document.querySelectorAll('[data-state="running"]')) watch(panel);

async function account(bar) {
  const again = new Set(["spent", "left"].map((name) => bar.querySelector(`[data-bar=${name}]`)));
  while (bar.dataset.reading !== undefined) {
    await new Promise((wake) => setTimeout(wake, 1500));
    const answer = await fetch("/ledger").catch(() => null);
    if (!answer) continue;
    if (!answer.ok) return;
    const now = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".bar");
    for (const one of again) {
      const said = now.querySelector(`[data-bar=${one.dataset.bar}]`);
      [one.textContent, one.title] = [said.textContent, said.title];
    }
    if (now.dataset.reading === undefined) delete bar.dataset.reading;
  }
}
for (const bar of document.querySelectorAll("[data-reading]")) account(bar);

const PART = /^[^.].*\.(csv|tsv|csv\.gz|tsv\.gz|parquet)$/i;

// Files are sent one after the other; parts of a folder into the folder that the answer to the first one names.
function send(files, area, target, folder) {
  const bar = area.querySelector("[data-sent]");
  const said = area.querySelector("[data-said]");
  const sizes = files.map((file) => file.size);
  const all = sizes.reduce((sum, size) => sum + size, 0) || 1;
  const refused = (words) => { said.textContent = words; bar.hidden = true; };
  if (!files.length) return refused(document.body.dataset.untaken);
  bar.hidden = false;
  const next = (place, before) => {
    const sending = new XMLHttpRequest();
    sending.upload.onprogress = (event) => { bar.value = (before + event.loaded) / all; };
    sending.onload = () => {
      if (sending.status !== 200) return refused(sending.responseText);
      if (folder) folder = sending.responseText;
      if (place + 1 < files.length) return next(place + 1, before + sizes[place]);
      target.value = sending.responseText;
      target.form.submit();
    };
    sending.onerror = () => refused(document.body.dataset.untaken);
    sending.open("POST", "/upload");
    sending.setRequestHeader("Content-Type", "application/octet-stream");
    sending.setRequestHeader("X-Studio-Key", document.body.dataset.key);
    sending.setRequestHeader("X-Studio-Name", encodeURIComponent(files[place].name));
    if (folder) sending.setRequestHeader("X-Studio-Folder", encodeURIComponent(folder));
    sending.send(files[place]);
  };
  next(0, 0);
}

const parts = (files) => files.filter((file) => PART.test(file.name)).sort((a, b) => (a.name < b.name ? -1 : 1));

async function inside(entry) {
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((take, fail) => reader.readEntries(take, fail));
    if (!some.length) break;
    found.push(...some.filter((one) => one.isFile));
  }
  return Promise.all(found.map((one) => new Promise((take, fail) => one.file(take, fail))));
}

for (const picker of document.querySelectorAll("[data-upload]")) {
  const area = picker.closest("[data-drop]");
  const target = document.getElementById(picker.dataset.upload);
  picker.addEventListener("change", () => {
    const files = [...picker.files];
    if (!files.length) return;
    if (!picker.webkitdirectory) return send(files.slice(0, 1), area, target, "");
    const direct = files.filter((file) => file.webkitRelativePath.split("/").length === 2);
    send(parts(direct), area, target, files[0].webkitRelativePath.split("/")[0]);
  });
}
for (const area of document.querySelectorAll("[data-drop]")) {
  const target = document.getElementById(area.querySelector("[data-upload]").dataset.upload);
  area.addEventListener("dragover", (event) => { event.preventDefault(); area.classList.add("over"); });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", async (event) => {
    event.preventDefault();
    area.classList.remove("over");
    const dropped = event.dataTransfer.items[0] && event.dataTransfer.items[0].webkitGetAsEntry();
    if (dropped && dropped.isDirectory) return send(parts(await inside(dropped)), area, target, dropped.name);
    if (event.dataTransfer.files[0]) send([event.dataTransfer.files[0]], area, target, "");
  });
}
