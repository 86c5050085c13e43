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

function send(file, area, target) {
  const bar = area.querySelector("[data-sent]");
  const said = area.querySelector("[data-said]");
  const sending = new XMLHttpRequest();
  bar.hidden = false;
  sending.upload.onprogress = (event) => { bar.value = event.loaded / event.total; };
  sending.onload = () => {
    if (sending.status !== 200) { said.textContent = sending.responseText; bar.hidden = true; return; }
    target.value = sending.responseText;
    target.form.submit();
  };
  sending.onerror = () => { said.textContent = document.body.dataset.untaken; };
  sending.open("POST", "/upload");
  sending.setRequestHeader("Content-Type", "application/octet-stream");
  sending.setRequestHeader("X-Studio-Key", document.body.dataset.key);
  sending.setRequestHeader("X-Studio-Name", encodeURIComponent(file.name));
  sending.send(file);
}
for (const picker of document.querySelectorAll("[data-upload]")) {
  const area = picker.closest("[data-drop]");
  const target = document.getElementById(picker.dataset.upload);
  picker.addEventListener("change", () => { if (picker.files[0]) send(picker.files[0], area, target); });
  area.addEventListener("dragover", (event) => { event.preventDefault(); area.classList.add("over"); });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("over");
    if (event.dataTransfer.files[0]) send(event.dataTransfer.files[0], area, target);
  });
}
