// Tables, parts that scroll, versions of this site. No request but of ../versions.js, where versions are kept.
(function () {
  "use strict";
  // A keyboard reaches what scrolls sideways, also after a window was made narrow.
  function reachable() {
    document.querySelectorAll("pre, pre > code, .md-typeset__table, .md-typeset__scrollwrap, .shown").forEach(function (part) {
      if (part.scrollWidth > part.clientWidth + 1 && !part.hasAttribute("tabindex")) part.tabIndex = 0;
    });
  }
  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll(".md-typeset table:not([class]) td").forEach(function (cell) {
      if (cell.textContent.length > 40) cell.classList.add("sentence");
    });
    document.querySelectorAll(".md-typeset table code").forEach(function (code) {
      if (code.textContent.length <= 30) code.classList.add("name");
    });
    reachable();
  });
  window.addEventListener("load", reachable);
  window.addEventListener("resize", reachable);

  // `./dev docs --keep` writes versions.js: window.gibbousVersions = [[name, folder], ...], newest first.
  var kept = false; // website/versions.py makes it true in its copy
  if (!kept) return;
  var base = document.currentScript.src.replace(/assets\/site\.js.*$/, "");
  var list = document.createElement("script");
  list.src = base + "../versions.js";
  list.onload = function () {
    var versions = window.gibbousVersions || [];
    var title = document.querySelector(".md-header__title");
    if (!title || versions.length < 2) return;
    var choice = document.createElement("select");
    choice.setAttribute("aria-label", "Version of these pages");
    choice.className = "versions";
    versions.forEach(function (version) {
      var address = new URL("../" + version[1] + "/", base).href;
      choice.add(new Option(version[0], address, false, address === base));
    });
    choice.addEventListener("change", function () {
      window.location.href = choice.value + "index.html";
    });
    title.after(choice);
  };
  document.head.append(list);
})();
