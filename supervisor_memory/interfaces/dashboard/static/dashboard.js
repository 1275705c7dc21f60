// Keys for who reviews much. Everything works without this file.
"use strict";

(() => {
  const items = () => [...document.querySelectorAll("[data-item]")];
  const current = () => document.activeElement && document.activeElement.closest("[data-item]");

  function move(step) {
    const all = items();
    if (!all.length) return;
    const at = all.indexOf(current());
    const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
    const target = next.matches("[data-main]") ? next : next.querySelector("[data-main]") || next;
    if (target === next && !next.matches("a")) next.tabIndex = -1;
    target.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  function act(key) {
    const item = current();
    if (!item) return move(1), true; // what nobody chose is not decided; the next press decides it
    const control = item && item.querySelector(`[data-do="${key}"]`);
    if (!control) return false;
    if (key === "e") {
      const details = control.closest("details");
      details.open = true;
      details.querySelector("textarea").focus();
    } else {
      control.click();
    }
    return true;
  }

  function press(key) {
    if (key === "j") return move(1), true;
    if (key === "k") return move(-1), true;
    if (key === "a" || key === "e" || key === "r") return act(key);
    if (key === "u") {
      const undo = document.querySelector("[data-undo]");
      return undo ? (undo.click(), true) : false;
    }
    if (key === "?") {
      const help = document.querySelector("details.keys");
      return help ? ((help.open = !help.open), true) : false;
    }
    return false;
  }

  // Times as the reader's clock has them; without this they are in UTC, and say so.
  const part = (n) => String(n).padStart(2, "0");
  for (const told of document.querySelectorAll("time[datetime]")) {
    const at = new Date(told.getAttribute("datetime"));
    if (Number.isNaN(at.getTime())) continue;
    told.title = told.textContent;
    const day = `${at.getFullYear()}-${part(at.getMonth() + 1)}-${part(at.getDate())}`;
    told.textContent = `${day} ${part(at.getHours())}:${part(at.getMinutes())}`;
  }
  const foot = document.querySelector("[data-zone]");
  if (foot) {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    foot.textContent = foot.dataset.zone.replace("{zone}", zone);
  }

  const picked = document.querySelector("[data-picked]");
  if (picked) {
    const boxes = (within) => [...within.querySelectorAll("[name^='p-']")];
    const ids = (box) => box.name.slice(2).split(" ");
    const total = (some) => some.reduce((n, box) => n + ids(box).length, 0);
    const count = () => {
      const of = (name) => new Set(document.querySelector(`form [name=${name}]`).value.split(" ").filter(Boolean));
      const [nothing, waits] = [of("nothing"), of("waits")];
      const n = total(boxes(document).filter((box) => box.checked));
      const others = boxes(document).filter((box) => !box.checked).flatMap(ids);
      const still = others.filter((id) => nothing.has(id)).length;
      const rejected = others.filter((id) => !nothing.has(id) && !waits.has(id)).length;
      picked.textContent = picked.dataset.picked.replace("{n}", n);
      document.querySelectorAll("[data-all]").forEach((button) => (button.disabled = !n));
      const split = document.querySelector("[data-split]");
      const told = [[n, "split"], [rejected, "reject"], [still, "nothing"]].filter(([number]) => number);
      const text = told.map(([number, name]) => split.dataset[name].replace("{n}", number)).join(split.dataset.comma);
      split.textContent = text.charAt(0).toUpperCase() + text.slice(1);
      split.hidden = !rejected && !still;
      for (const pick of document.querySelectorAll("[data-pick]")) {
        const all = boxes(pick.closest("[data-like]"));
        pick.closest("label").hidden = false;
        pick.checked = all.every((box) => box.checked);
        pick.indeterminate = !pick.checked && all.some((box) => box.checked);
      }
    };
    // What was picked and taken out goes with the address: to another filter, another language, a reload.
    const keep = (some, out = "unpicked") => {
      const address = new URL(location.href);
      for (const kept of document.querySelectorAll("[data-kept]")) {
        const all = new Set(kept.value.split(" ").filter(Boolean));
        for (const box of some) {
          for (const id of ids(box)) {
            all.delete(id);
            if (kept.name === (box.checked ? "picked" : out)) all.add(id);
          }
        }
        kept.value = [...all].join(" ");
        address.searchParams.set(kept.name, kept.value);
        for (const link of document.querySelectorAll("a[hreflang]")) {
          const there = new URL(link.href);
          there.searchParams.set(kept.name, kept.value);
          link.href = there.href;
        }
      }
      address.searchParams.delete("lang"); // the cookie has it
      history.replaceState(null, "", address);
    };
    // What approving the picked ones would do, as they are picked now. Nothing is picked but by a person.
    let latest = 0;
    const follow = async () => {
      const mine = ++latest;
      const answer = await fetch(location.href).catch(() => null); // leaving the page breaks it off
      if (!answer || !answer.ok || mine !== latest) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const shown = document.querySelector("[data-sections]");
      const fresh = page.querySelector("[data-sections]");
      if (mine !== latest || !fresh) return;
      const was = new Map(boxes(shown).flatMap((box) => ids(box).map((id) => [id, box.checked])));
      const name = document.activeElement && document.activeElement.name;
      shown.replaceWith(document.adoptNode(fresh));
      const changed = boxes(fresh).filter((box) => {
        const before = ids(box).every((id) => was.get(id) ?? false);
        const differs = box.checked !== before;
        box.checked = before;
        return differs;
      });
      const focused = name && boxes(fresh).find((box) => box.name === name);
      if (focused) focused.focus();
      count();
      if (changed.length) keep(changed, "waits"), count(), follow();
    };
    document.addEventListener("change", (event) => {
      if (event.target.matches("[data-pick]")) {
        const all = boxes(event.target.closest("[data-like]"));
        all.forEach((box) => (box.checked = event.target.checked));
        keep(all);
      } else if (event.target.matches("[name^='p-']")) {
        keep([event.target]);
      } else {
        return;
      }
      count();
      follow();
    });
    count();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing) return;
    const field = event.target.closest("input, textarea, select");
    if (field) {
      if (field.type === "checkbox" && event.key !== " ") {
        if (event.key === "Enter" || press(event.key)) event.preventDefault(); // Enter would decide on all
      } else if (event.key === "Escape") {
        const item = field.closest("[data-item]");
        field.blur();
        if (item) item.focus();
      }
      return;
    }
    if (press(event.key)) event.preventDefault();
  });
})();
