// The theme button, and the tree of modules: its rows are made when they are unfolded.
"use strict";
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const say = () => { document.getElementById("theme-word").textContent = isDark() ? "Light" : "Dark"; };
  const remember = (theme) => { try { localStorage.setItem("fairlead-theme", theme); } catch { /* a file may have no storage */ } };
  try {
    const kept = localStorage.getItem("fairlead-theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch { /* as above */ }
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; remember(root.dataset.theme); say(); });
  system.addEventListener("change", say);
  say();

  const CHUNK = 200; // rows made at once: a module may have executed thousands of operators

  const element = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const size = (bytes) => {
    for (const unit of ["B", "kB", "MB"]) {
      if (bytes < 1000) return unit === "B" ? `${bytes} B` : `${bytes.toFixed(1)} ${unit}`;
      bytes /= 1000;
    }
    return `${bytes.toFixed(2)} GB`;
  };
  const counted = (n) => `${n.toLocaleString("en")} operator${n === 1 ? "" : "s"}`;

  function tree(host) {
    const data = JSON.parse(document.getElementById(host.dataset.of).textContent);
    const { strings, operators, modules, lines } = data;

    function row(level, parts) {
      const item = element("div");
      item.setAttribute("role", "treeitem");
      item.setAttribute("aria-level", level);
      item.tabIndex = -1;
      const line = element("div", "line-row");
      line.append(...parts);
      item.append(line);
      return item;
    }

    // Operators that one line called stand together: its text is said once.
    function operatorRow(k, level, before) {
      const source = operators.source[k];
      const parts = [element("code", "op n", strings[operators.op[k]]), element("span", "type n", strings[operators.result[k]])];
      if (operators.attributes[k]) parts.push(element("span", "muted small n", strings[operators.attributes[k]]));
      if (source) {
        const place = element("code", "place grow n", strings[source].split("/").pop());
        place.title = strings[source];
        parts.push(place);
      }
      if (lines[source] && source !== before) {
        const text = element("span", "text");
        text.append(element("code", "n", lines[source]));
        parts.push(text);
      }
      return row(level, parts);
    }

    function moduleRow(m, level) {
      const name = element("b", "n", m === 0 ? host.dataset.name : modules.name[m]);
      const parts = [name, element("span", "muted small", counted(modules.operators[m]))];
      if (modules.bytes[m]) parts.push(element("span", "muted small", size(modules.bytes[m])));
      const item = row(level, parts);
      item.setAttribute("aria-expanded", "false");
      item.module = m;
      return item;
    }

    // Appends the next rows of a module, and a row that asks for more where there are more.
    function fill(group, m, from, level) {
      const items = modules.items[m];
      const to = Math.min(items.length, from + CHUNK);
      const made = [];
      // Operator k is k, submodule m is -m: 0 is an operator, as the model itself is nobody's submodule.
      for (let k = from; k < to; k++) {
        const before = k > 0 && items[k - 1] >= 0 ? operators.source[items[k - 1]] : 0;
        made.push(items[k] < 0 ? moduleRow(-items[k], level) : operatorRow(items[k], level, before));
      }
      if (to < items.length) {
        const more = row(level, [element("span", "", `show ${Math.min(CHUNK, items.length - to)} more of ${items.length - to}`)]);
        more.classList.add("more");
        more.act = () => { more.remove(); focus(fill(group, m, to, level)); };
        made.push(more);
      }
      group.append(...made);
      return made[0];
    }

    function unfold(item, open) {
      if (!item.hasAttribute("aria-expanded")) return;
      if (open && !item.group) {
        item.group = element("div");
        item.group.setAttribute("role", "group");
        item.append(item.group);
        fill(item.group, item.module, 0, Number(item.getAttribute("aria-level")) + 1);
      }
      if (item.group) item.group.hidden = !open;
      item.setAttribute("aria-expanded", String(open));
    }

    let current = null;
    function focus(item) {
      if (!item) return;
      if (current) current.tabIndex = -1;
      current = item;
      item.tabIndex = 0;
      item.focus({ preventScroll: true });
      item.firstChild.scrollIntoView({ block: "nearest" });
    }
    const isOpen = (item) => item.getAttribute("aria-expanded") === "true";
    const parent = (item) => item.parentElement.closest('[role="treeitem"]');
    function next(item) {
      if (isOpen(item)) return item.group.firstElementChild;
      for (let at = item; at; at = parent(at)) if (at.nextElementSibling) return at.nextElementSibling;
      return null;
    }
    function last(item) {
      while (isOpen(item)) item = item.group.lastElementChild;
      return item;
    }
    const previous = (item) => (item.previousElementSibling?.role === "treeitem" ? last(item.previousElementSibling) : parent(item));

    const act = (item) => (item.act ? item.act() : unfold(item, !isOpen(item)));
    host.addEventListener("click", (event) => {
      const item = event.target.closest('[role="treeitem"]');
      if (!item || String(getSelection())) return;
      focus(item);
      act(item);
    });
    host.addEventListener("keydown", (event) => {
      const item = event.target.closest('[role="treeitem"]');
      if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
      const keys = {
        ArrowDown: () => focus(next(item)),
        ArrowUp: () => focus(previous(item)),
        ArrowRight: () => (item.hasAttribute("aria-expanded") && !isOpen(item) ? unfold(item, true) : isOpen(item) && focus(next(item))),
        ArrowLeft: () => (isOpen(item) ? unfold(item, false) : focus(parent(item))),
        Home: () => focus(host.firstElementChild),
        End: () => focus(last(host.firstElementChild)),
        Enter: () => act(item),
        " ": () => act(item),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });

    const top = moduleRow(0, 1);
    host.append(top);
    unfold(top, true);
    // A model that is one module in another unfolds to where it divides.
    for (let item = top; modules.items[item.module].length === 1 && modules.items[item.module][0] < 0;) {
      item = item.group.firstElementChild;
      unfold(item, true);
    }
    current = top;
    top.tabIndex = 0;
  }
  for (const host of document.querySelectorAll(".tree")) tree(host);
})();
