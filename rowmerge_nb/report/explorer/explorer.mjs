// The explorer's front end. It draws what `explorer_state` has computed, and computes nothing of the statement itself.
// Every name and value goes in as text (textContent, setAttribute): none is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";
const PLAY_MS = 1600;
const FATES = ["INSERT", "UPDATE", "DELETE", "none"];
// After this time the explorer reports that the kernel does not answer. A trial takes less, unless the kernel is busy.
const PATIENCE_MS = 10000;
// Short names of values that are long.
const SHORT = { DELETE_ROW_AND_INSERT_ROW: "delete + insert", CHANGE_ONLY_UPDATED_COLUMNS: "change columns" };
const OPTIONS = ["paradigm", "era", "duplicates"];
// What an option is called, and what it decides.
const OPTION_WORDS = {
  paradigm: ["row change paradigm", "the form of changes that the connector accepts"],
  era: ["page format", "the pages and the exchange of the design documents of MERGE, or those of Trino today"],
  duplicates: ["duplicate rule", "when several source rows for one target row end the statement: Trino\u2019s rule, or the SQL standard\u2019s"],
};
// A DELETE is one row under both paradigms, and without a join nothing is matched twice.
const OPTIONS_OF = { MERGE: OPTIONS, UPDATE: ["paradigm", "era"], DELETE: ["era"] };
const MARKS = { D: "a DELETE fires", U: "an UPDATE fires", I: "an INSERT fires", "\u00b7": "fires and does nothing", f: "false", "?": "unknown", x: "not true", e: "an error", "\u2013": "about other rows" };
// At these steps the same rows are in other hands.
const HANDS = { exchange: "Rows and their writers", sinks: "What the sinks get", finish: "What the fragments name", commit: "What was committed", rollback: "What was rolled back" };
const WOULD = { sinks: "What the sinks would get", finish: "What the fragments would name", commit: "What would be committed", rollback: "What would be rolled back" };
const KEYS = "Keys, after a click in here: \u2190 \u2192 step, \u2191 \u2193 row, Home and End the first and the last of either, 0\u20139 rows of a clause, Esc marks none, p play and pause";
const TABS = [["row", "Row"], ["clauses", "Clauses"], ["writers", "Writers"], ["calls", "Calls"]];

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(9)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

const h = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const g = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
const badge = (style, text) => h("span", { class: `rm-op rm-${style}` }, text);
const styleOf = (fate) => ({ INSERT: "I", UPDATE: "U", DELETE: "D" })[fate] ?? "N";
// A blank at an end of a text is what keeps many a row from its partner, and nobody sees it.
function value(text) {
  if (text === null) return h("i", {}, "NULL");
  const [, before, inner, after] = /^( *)(.*?)( *)$/s.exec(text);
  const blank = (some) => some && h("span", { class: "rx-blank", role: "img", "aria-label": some.length > 1 ? `${some.length} blanks` : "blank" }, "\u2423".repeat(some.length));
  return [blank(before), inner, blank(after)];
}
const listed = (values) => values.map((one, index) => [index ? ", " : "", one === null ? "NULL" : value(one)]);

// What the options have made otherwise is told as a difference from the run.
function applied(old, change) {
  if (!change) return old;
  const [kind, parts, more] = change;
  if (kind === "=") return parts;
  if (kind === "[") return Array.from({ length: more }, (_, at) => applied(old[at], parts[at]));
  const found = { ...old };
  for (const name of more) delete found[name];
  for (const [name, part] of Object.entries(parts)) found[name] = applied(old[name], part);
  return found;
}

// A page beside that of the run, row by row and by the names of channels: which cells are others, and which rows of the run are gone.
function beside(page, run, same) {
  const named = (channels) => {
    const seen = {};
    return channels.map(({ name }) => `${(seen[name] = (seen[name] ?? 0) + 1)} ${name}`);
  };
  const names = named(page.channels), theirs = named(run.channels);
  const left = [...run.rows], rows = [];
  for (const of of [...new Set([...page.rows, ...run.rows].map((row) => row.of))].sort((a, b) => a - b)) {
    for (const row of page.rows.filter((one) => one.of === of)) {
      const at = left.findIndex((one) => one.of === of && same(one, row));
      const [was] = at < 0 ? [] : left.splice(at, 1);
      rows.push({ ...row, changed: row.cells.map((cell, index) => !was || !theirs.includes(names[index]) || was.cells[theirs.indexOf(names[index])] !== cell) });
    }
    for (const was of left.filter((one) => one.of === of)) rows.push({ ...was, gone: true, cells: names.map((name) => (theirs.includes(name) ? was.cells[theirs.indexOf(name)] : "")) });
  }
  return rows;
}

let made = 0;

function render({ model, el }) {
  let base, state, steps;
  // The state of the run or of a trial; over it what the chosen options make of the same rows, where that is known.
  function read() {
    base = model.get("state");
    state = laid(nameOf());
    steps = state.steps.map((step) => step.key);
  }
  // In this order: a saved notebook has the names in an object in another one.
  const nameOf = (changes = {}) => OPTIONS.filter((name) => base.otherwise?.choices[name]).map((name) => changes[name] ?? model.get(name)).join("|");
  const isDerived = (name) => Object.hasOwn(base.otherwise?.changes ?? {}, name);
  // Under the options as they ran nothing is laid over it, nor over a trial.
  const laid = (name) => (isDerived(name) ? applied(laid(base.otherwise.changes[name][0]), base.otherwise.changes[name][1]) : base);
  read();
  const local = { tab: "row", playing: null, predict: model.get("predict") && !state.failed ? "choosing" : "off", guessed: "run", trying: false, draft: null, focus: null, asked: null, silent: false, cells: false, opened: new Set(), id: (made += 1) };
  const box = h("div", { class: "rm rx", "data-lm-suppress-shortcuts": "true", role: "group", "aria-label": `Explorer of ${state.kind} ${state.target}` });
  const body = h("div", { class: "rx-body" });
  const live = h("div", { class: "rx-live", role: "status" });
  let heard = null;
  box.append(body, live);
  // The notebook's output has this explorer as a page as well, for the day without a kernel.
  const saved = model.get("saved");
  if (/^[0-9a-f]+$/.test(saved ?? "")) box.append(h("style", {}, `.rx-saved-${saved},.jp-OutputArea-child:has(.rx-saved-${saved}){display:none!important}`));
  el.replaceChildren(box);

  // Of what fails on the way there are no further steps.
  const at = () => (steps.includes(model.get("step")) ? steps.indexOf(model.get("step")) : steps.length - 1);
  const stepOf = (key) => steps.indexOf(key);
  const chosen = () => {
    const row = model.get("row");
    return Number.isInteger(row) && row >= 0 && row < state.rows.length ? row : -1;
  };
  const hidden = () => local.predict === "choosing";
  // Guesses are about the rows of one statement and its source. Another one has other facts.
  const facts = () => (base.trial ? JSON.stringify([model.get("statement"), model.get("cells")]) : "run");
  // An UPDATE and a DELETE have one table: which of its rows WHERE chooses is the question, so that all known rows are guessed, in an order that does not say.
  const guesses = () => {
    const rows = state.rows.map((row, index) => ({ row, index }));
    if (state.kind === "MERGE") return rows;
    const others = state.others.map(({ cells }, place) => ({ index: state.rows.length + place, row: { number: null, name: cells[0], source: null, target: cells, fate: "none", marks: [], verdicts: [] } }));
    const order = new Intl.Collator(undefined, { numeric: true });
    return [...rows, ...others].sort((one, other) => order.compare(one.row.target.join("\n"), other.row.target.join("\n")));
  };
  const guessable = () => !state.failed && state.rows.length > 0 && (state.kind === "MERGE" || state.others.length > 0);
  const fates = () => (state.kind === "MERGE" ? FATES : [state.kind, "none"]);
  const scoreWords = () => `${model.get("score")} of ${guesses().length} right.`;
  const markOf = (index, fate) => {
    const pick = (model.get("picks") ?? {})[index];
    if (!isScored()) return false;
    return h("em", { class: pick === fate ? "rx-right" : "rx-wrong" }, pick === fate ? " \u2713 right" : ` \u00d7 you chose ${pick}`);
  };
  const isScored = () => local.predict === "shown" && model.get("score") !== null && local.guessed === facts() && !state.failed;
  // Several explorers may be on one page.
  const idOf = (what, key) => `rx-${local.id}-${what}-${key}`;

  function set(changes) {
    for (const [name, one] of Object.entries(changes)) model.set(name, one);
    model.save_changes();
  }
  const goTo = (index) => set({ step: steps[Math.min(steps.length - 1, Math.max(0, index))] });
  // The mark of a clause ends where its tab does.
  function open(tab) {
    local.tab = tab;
    if (tab !== "clauses" && Number.isInteger(model.get("clause"))) set({ clause: null });
    later();
  }
  const choose = (row) => {
    open("row");
    set({ row });
  };
  function play() {
    if (local.playing !== null) return pause();
    if (at() === steps.length - 1) goTo(0);
    local.playing = setInterval(() => {
      goTo(at() + 1);
      if (at() === steps.length - 1) pause();
    }, PLAY_MS);
    later();
  }
  function pause() {
    clearInterval(local.playing);
    local.playing = null;
    later();
  }

  // -- the parts ------------------------------------------------------------------------------------------------------

  const runs = (phrase) =>
    phrase.map(([text, style]) =>
      "IUDN".includes(style) && style ? h("b", { class: `rm-${style}` }, text)
        : style === "code" ? h("code", {}, text)
        : style === "b" ? h("b", {}, text)
        : style === "err" ? h("span", { class: "rm-err" }, text)
        : text);

  function head() {
    const step = state.steps[at()];
    return [
      // Beneath its report the run has a headline already.
      (hidden() || state.trial || !model.get("beneath")) && h("p", { class: "rm-out" }, hidden() ? "What becomes of each row?" : [state.tag && h("b", {}, state.tag), runs(state.outcome)]),
      (state.trial || !model.get("beneath")) && !hidden() && h("p", { class: "rm-meta" }, runs(state.meta)),
      !hidden() && switches(),
      h("div", { class: "rx-controls" },
        h("button", { "data-key": "play", click: play, disabled: hidden(), "aria-pressed": local.playing !== null ? "true" : "false" }, local.playing === null ? "Play" : "Pause"),
        h("button", { "data-key": "back", click: () => goTo(at() - 1), disabled: hidden() || at() === 0, "aria-label": "step back" }, "\u2039"),
        h("button", { "data-key": "on", click: () => goTo(at() + 1), disabled: hidden() || at() === steps.length - 1, "aria-label": "next step" }, "\u203a"),
        h("ol", { class: "rx-steps", "aria-label": "Steps" }, state.steps.map(({ key, name }, index) =>
          h("li", { class: state.failed && index === steps.length - 1 ? "rx-failed" : index < at() ? "rx-past" : index === at() ? "rx-now" : "" },
            h("button", { "data-key": `step-${key}`, disabled: hidden(), click: () => goTo(index), "aria-current": index === at() ? "step" : null },
              name, state.failed && index === steps.length - 1 && h("span", { class: "rm-err", "aria-label": ", failed here" }, " \u00d7"), state.trial?.differs.includes(key) && h("span", { class: "rx-differs", "aria-label": ", differs from the run" }, " \u2260"))))),
        guessable() && predictButton(),
        !hidden() && h("button", { "data-key": "whatif", "aria-expanded": local.trying ? "true" : "false", click: () => { local.trying = !local.trying; later(); } }, "What if", !base.choices && h("small", {}, base.failed ? " (not here)" : " (needs a kernel)"))),
      !hidden() && local.trying && whatIf(),
      h("div", { class: "rx-saying" }, h("p", { class: `rx-says${state.failed && at() === steps.length - 1 ? " rm-err" : ""}` }, hidden() ? "Choose for every row what becomes of it, then reveal." : step.says),
        !hidden() && h("button", { class: "rx-link", "data-key": "to-moment", click: toMoment }, "Show the page \u2193")),
      !hidden() && step.aside && h("p", { class: "rx-aside" }, differsBeside(step) && h("b", {}, "\u2260 "), step.aside, step.key === "distinct" && options("duplicates").length > 1 && state.options.duplicates === ran("duplicates") && ` Switch \u201c${OPTION_WORDS.duplicates[0]}\u201d above to apply the other rule.`),
      !hidden() && step.examples.length > 0 && examples(step.examples),
      at() === steps.length - 1 && (state.raised ?? []).map(raised),
      state.absent.map((says) => h("p", { class: "rm-p" }, says)),
    ];
  }

  // The page stands below all that is chosen by; the steps stay in sight there.
  function toMoment() {
    const page = box.querySelector(".rx-moment");
    page.scrollIntoView({ block: "start" });
    page.focus({ preventScroll: true });
  }

  // Another rule stands there than beside the same step of the run.
  const differsBeside = (step) => base !== state && base.steps.some((one) => one.key === step.key && one.aside !== step.aside);

  function examples(rows) {
    return h("div", { class: "rx-examples" }, scroll("Trino and the SQL standard", h("table", { class: "rm-t" },
      h("thead", {}, h("tr", {}, ["source rows for one target row", "Trino", "the SQL standard"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((text) => h("td", { class: "rm-w" }, text))))))));
  }

  // What the connector's code has raised: the call, the line with its neighbours, what the call was given.
  function raised({ call, what, places, code, causes, stack, title, columns, rows, handle }) {
    return h("div", { class: "rx-raised" },
      h("h4", {}, call),
      h("p", { class: "rm-err" }, what),
      places.map((place) => h("p", { class: "rm-meta" }, place)),
      code.length > 0 && h("pre", { class: "rm-code" }, code.map(([number, text, marked], index) => [
        index ? "\n" : "", marked ? h("b", { class: "rm-err" }, ">") : " ", " ", h("span", { class: "rm-ln" }, number), "  ", marked ? h("b", {}, text) : text])),
      causes.map((cause) => [h("p", { class: "rm-err" }, cause.what), cause.places.map((place) => h("p", { class: "rm-meta" }, place))]),
      stack.text && h("details", {}, h("summary", {}, stack.title), h("pre", { class: "rm-code" }, stack.text)),
      title && h("p", { class: "rm-p" }, title),
      columns.length > 0 && h("div", { class: "rm-scroll", tabindex: "0", role: "region", "aria-label": title },
        h("table", { class: "rm-t" },
          h("thead", {}, h("tr", {}, columns.map(({ name, right }) => h("th", { scope: "col", class: right ? "rm-r" : "" }, name)))),
          h("tbody", {}, rows.map((row) => h("tr", {}, row.map((text, index) => h("td", { class: columns[index].right ? "rm-r" : "" }, text === null ? h("i", {}, "NULL") : text))))))),
      handle && h("p", { class: "rm-p" }, "Handle: ", h("code", {}, handle)));
  }

  function predictButton() {
    if (local.predict === "choosing") {
      const picks = model.get("picks") ?? {};
      const missing = guesses().length - Object.keys(picks).length;
      return [
        h("button", { "data-key": "predict", class: "rx-predict", click: reveal, disabled: missing > 0 }, missing ? `${missing} to choose` : "Reveal"),
        h("button", { "data-key": "cancel", click: cancel }, "Cancel"),
      ];
    }
    const begin = () => {
      if (local.playing !== null) pause();
      local.predict = "choosing";
      local.guessed = facts();
      local.focus = "select";
      set({ picks: {}, score: null, clause: null, step: steps[Math.min(steps.length - 1, Math.max(0, stepOf("join")))] });
      later();
    };
    return h("button", { "data-key": "predict", class: "rx-predict", click: begin }, local.predict === "shown" ? "Predict again" : "Predict");
  }

  function cancel() {
    local.predict = "off";
    local.focus = '[data-key="predict"]';
    set({ picks: {}, score: null });
    later();
  }

  function reveal() {
    const picks = model.get("picks") ?? {};
    local.predict = "shown";
    set({ score: guesses().filter(({ row, index }) => picks[index] === row.fate).length });
    later();
  }

  // -- options --------------------------------------------------------------------------------------------------------

  const ran = (name) => model.get("asrun")[name];
  const untried = () => !base.trial && model.get("statement") === ran("statement") && !Object.keys(model.get("cells") ?? {}).length;

  // What the options make of the rows of the run is known; of another text or other cells the kernel tells it.
  function choosing(changes) {
    const own = OPTIONS.every((name) => (changes[name] ?? model.get(name)) === ran(name));
    if (untried() && (own || isDerived(nameOf(changes)))) set(changes);
    else attempt(changes);
  }
  function back() {
    local.draft = null;
    const changes = model.get("asrun");
    if (untried() && !model.get("trouble")) set(Object.fromEntries(OPTIONS.map((name) => [name, changes[name]])));
    else attempt(changes);
  }

  const options = (name) => base.otherwise?.choices[name] ?? base.choices?.[name] ?? [];

  function switches() {
    const known = OPTIONS_OF[base.kind].map((name) => [name, options(name)]).filter(([, values]) => values.length > 1);
    return [
      known.length > 0 && h("div", { class: "rx-switches" }, known.map(([name, values]) => h("div", { role: "group", "aria-label": OPTION_WORDS[name][0] }, h("span", {}, OPTION_WORDS[name][0]),
        values.map((one) => h("button", {
          "data-key": `${name}-${one}`, "aria-pressed": model.get(name) === one ? "true" : "false", title: ran(name) === one ? `${one}, as it ran` : one, click: () => choosing({ [name]: one }),
        }, SHORT[one] ?? one))))),
      known.length > 0 && h("p", { class: "rx-options" }, known.map(([name], index) => [index ? "; " : "", h("b", {}, OPTION_WORDS[name][0]), `: ${OPTION_WORDS[name][1]}`]), "."),
      state.trial && h("p", { class: "rx-other" }, h("span", { class: "rx-tag" }, state.trial.tag), state.trial.says, " ", h("button", { class: "rx-link", "data-key": "if-back", click: back }, "Back to the run")),
    ];
  }

  // -- what if --------------------------------------------------------------------------------------------------------

  // The kernel runs it: nothing of a statement is computed here.
  function attempt(changes) {
    clearTimeout(local.asked);
    local.silent = false;
    local.asked = setTimeout(() => { local.silent = true; later(); }, PATIENCE_MS);
    set(changes);
    later();
  }
  function answered() {
    clearTimeout(local.asked);
    Object.assign(local, { asked: null, silent: false });
    later();
  }

  function whatIf() {
    const why = base.otherwise?.why && h("p", { class: "rm-p" }, base.otherwise.why);
    if (!base.choices && base.failed) return [why, h("p", { class: "rm-p" }, "The statement failed, so other options cannot be tried. Change it and run it again.")];
    if (!base.choices) return h("div", { class: "rx-if", role: "group", "aria-label": "What if" }, why, withoutKernel());
    const draft = local.draft ?? model.get("statement");
    const way = () => attempt({ statement: local.draft ?? model.get("statement") });
    return h("div", { class: "rx-if", role: "group", "aria-label": "What if" },
      why,
      cellEditor(),
      h("label", { class: "rx-statement" }, h("span", {}, "statement"),
        h("textarea", {
          "data-key": "if-statement", spellcheck: "false", rows: Math.min(14, draft.split("\n").length + 1),
          input: (event) => { local.draft = event.target.value; },
          keydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); way(); } },
        }, draft)),
      h("div", {},
        h("button", { "data-key": "if-try", class: "rx-predict", click: way }, "Try"), " ",
        h("button", { "data-key": "if-undo", click: back, disabled: untried() && !model.get("trouble") && local.draft === null }, "As it was")),
      h("div", { class: "rx-answer", role: "status" },
        local.silent ? h("p", { class: "rm-err" }, "No answer yet. Is the kernel running? After a restart, run the cell again.")
          : local.asked !== null ? h("p", {}, "Trying \u2026")
          : model.get("trouble") ? [h("p", { class: "rm-err" }, model.get("trouble")), h("p", {}, "The view is unchanged.")]
          : base.trial ? trialWords(base.trial)
          : h("p", {}, "Another statement runs on a copy of the target\u2019s original rows in memory, and is rolled back.")));
  }

  // What can be tried in a file, and what cannot.
  function withoutKernel() {
    const known = OPTIONS_OF[base.kind].filter((name) => options(name).length > 1);
    const untold = base.kind === "MERGE" ? "Another statement, or other values in the source," : "Another statement";
    return h("p", { class: "rm-p" },
      known.length > 0 && ["Without a kernel: the switches above (", known.map((name, index) => [index ? ", " : "", OPTION_WORDS[name][0]]), ") show the same rows under other options. "],
      `${untold} must run in a kernel. In the notebook of the statement, with its result in `, h("code", {}, "result"), ": ", h("code", {}, "result.explore()"), " opens this explorer with fields for both."
    );
  }

  function cellEditor() {
    const { columns, rows, why } = base.cells;
    if (!rows) return why && h("p", { class: "rm-p" }, `${why} Edit the statement instead.`);
    const cells = model.get("cells") ?? {};
    const edit = (row, column, one) => attempt({ cells: { ...cells, [row]: { ...cells[row], [column]: one } } });
    const cell = (row, column, was) => {
      const edited = cells[row] !== undefined && column in cells[row];
      const now = edited ? cells[row][column] : was;
      const name = `${column} of source row ${row}`;
      return h("td", {},
        h("input", {
          class: edited ? "rx-edited" : "", "data-key": `cell-${row}-${column}`, "aria-label": name, value: now ?? "", placeholder: now === null ? "NULL" : null, size: 9,
          title: edited ? `was ${was ?? "NULL"}` : null, spellcheck: "false", autocomplete: "off", change: (event) => edit(row, column, event.target.value),
        }),
        h("button", { class: "rx-link", "data-key": `null-${row}-${column}`, "aria-label": `NULL as ${name}`, disabled: now === null, click: () => edit(row, column, null) }, "NULL"));
    };
    return h("details", { class: "rx-cells", open: Object.keys(cells).length > 0 || local.cells, toggle: (event) => { local.cells = event.target.open; } },
      h("summary", { "data-key": "if-cells" }, "cells of the source"),
      scroll("Cells of the source", h("table", { class: "rm-t" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "row"), columns.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, rows.map(([row, values]) => h("tr", {}, h("th", { scope: "row" }, row), columns.map((name, index) => cell(row, name, values[index]))))))));
  }

  function trialWords({ note, moved }) {
    return [
      note && h("p", { class: "rm-err" }, note),
      moved.length > 0 && h("ul", {}, moved.map(({ row, name, was, is }, index) => h("li", {},
        row === null ? value(name) : h("button", { class: "rx-link", "data-key": `moved-${index}`, click: () => choose(row) }, value(name)),
        `: ${was === is ? `${was}, with other values` : `${was} \u2192 ${is}`}`))),
    ];
  }

  function rowList() {
    const groups = [...new Set(state.rows.map((row) => row.group))];
    const active = chosen() >= 0 ? chosen() : 0;
    const note = state.failed && !state.rows.length ? ["not known"] : [`${state.rows.length} ${state.failed && !state.before.rows.length ? "of the error" : state.kind === "MERGE" ? "joined" : "chosen"}`];
    const count = hidden() && state.kind !== "MERGE" && `${guesses().length} of the target`;
    if (state.untouched !== null) note.push(`${state.untouched} of the target not ${state.kind === "MERGE" ? "joined" : "chosen"}`);
    return h("section", { class: "rx-rows" },
      h("h4", {}, "Rows ", h("small", {}, count || state.sample || note.join(", "))),
      marked() !== null && h("p", { class: "rx-other" }, "Marked: the rows of ", clauseName(marked()), ". ", h("button", { class: "rx-link", "data-key": "all-rows", click: () => { local.focus = `[data-key="clause-${marked()}"]`; set({ clause: null }); } }, "All rows")),
      hidden() && state.kind === "MERGE" && h("p", { class: "rx-says" }, model.get("duplicates") === "standard" ? "Duplicate rule: two source rows that change one target row end the MERGE." : "Duplicate rule: two source rows for one target row and clause end the MERGE."),
      isScored() && h("p", { class: "rx-says" }, scoreWords()),
      local.predict === "shown" && !isScored() && h("p", { class: "rx-says" }, "Your guesses were about another statement or source, so they do not count here."),
      state.rows.length > 0 && rowHead(),
      // While a guess is asked for, each row has a control of its own, which no option of a listbox may have.
      h("div", { class: "rx-list", "data-key": "list", role: hidden() ? "list" : "listbox", "aria-label": "Rows" }, hidden() && state.kind !== "MERGE" ? guesses().map(({ row, index }, place) => option(row, index, place === 0)) : groups.map((group) =>
        hidden()
          ? [h("div", { class: "rx-group", role: "presentation" }, group), state.rows.map((row, index) => row.group === group && option(row, index, index === active))]
          : h("div", { role: "group", "aria-label": group },
              h("div", { class: "rx-group", role: "presentation" }, group), state.rows.map((row, index) => row.group === group && option(row, index, index === active))))),
      !hidden() && state.others.length > 0 && [
        h("div", { class: "rx-group" }, `target rows ${state.apart}`),
        h("ul", { class: "rx-others", "aria-label": `target rows ${state.apart}` }, state.others.map(alone)),
      ],
      state.rows[0]?.marks.length > 0 && !hidden() &&
        h("p", { class: "rm-p rx-signs" }, "Clauses by their numbers: ", signs()));
  }

  // A row that no clause looks at opens to its reasons.
  function alone({ cells, why, near }, index) {
    return h("li", {}, h("details", { open: local.opened.has(index), toggle: (event) => { local.opened[event.target.open ? "add" : "delete"](index); } },
      h("summary", { "data-key": `other-${index}` }, h("b", {}, value(cells[0])), " ", h("span", { class: "rx-values" }, "(", listed(cells), ")"), state.kind !== "MERGE" && markOf(state.rows.length + index, "none")),
      h("p", { class: "rm-p" }, why, near && ` ${near}`)));
  }

  const tableName = (side) => state.tables[side] && [" ", h("code", {}, state.tables[side])];

  // What stands in the columns below: the clauses by their numbers, and the columns of both sides.
  function rowHead() {
    const names = (side) => state.sides[side].length > 0 && h("span", {}, h("b", {}, side), tableName(side), " (", state.sides[side].map(({ name }, index) => [index ? ", " : "", name]), ")");
    const numbers = state.clauses.filter((clause) => clause.number >= 0).map((clause) => clause.number);
    const marks = !hidden() && state.rows[0].marks.length === numbers.length && numbers.length > 0;
    return h("div", { class: "rx-head" }, h("span", {}, "row"), h("span", {}, state.sides.source[0]?.name ?? state.sides.target[0]?.name ?? ""),
      h("span", marks ? { class: "rx-strip" } : {}, marks && numbers.map((number) => h("span", { title: clauseName(number) }, number))), h("span", {}, !hidden() && "becomes"),
      h("span", { class: "rx-values" }, names("source"), names("target")));
  }

  // Those that occur.
  function signs() {
    const found = new Set(state.rows.flatMap((row) => row.marks.map(([text]) => text)));
    const known = Object.entries(MARKS).filter(([text]) => found.has(text)).map(([text, says]) => [text === "?" ? h("span", { class: "rx-unknown" }, text) : h("b", {}, text), ` ${says}`]);
    if (found.has(" ")) known.push("blank: not reached");
    return known.map((one, index) => [index ? ", " : "", one]);
  }

  const rowName = (row) => `row ${row.number ?? ""} ${row.name ?? "NULL"}`.replace("  ", " ");
  const signOf = (text) => MARKS[text] ?? "not reached";
  const marked = () => (!hidden() && local.tab === "clauses" && Number.isInteger(model.get("clause")) ? model.get("clause") : null);
  const clauseName = (number) => state.clauses.find((one) => one.number === number)?.label ?? number;

  function option(row, index, active) {
    const picks = model.get("picks") ?? {};
    const dim = marked() !== null && marked() !== row.clause;
    return h("div", {
      role: hidden() ? "listitem" : "option", class: `rx-row${dim ? " rx-dim" : ""}`, "data-key": `row-${index}`, tabindex: active ? 0 : -1,
      "aria-selected": hidden() ? null : index === chosen() ? "true" : "false",
      click: (event) => { if (!hidden()) choose(index); },
    },
      h("span", { class: "rx-number" }, row.number ?? ""),
      h("span", { class: "rx-name" }, value(row.name)),
      hidden()
        ? h("select", { "data-key": `pick-${index}`, "aria-label": `what becomes of ${rowName(row)}`, change: (event) => { set({ picks: { ...picks, [index]: event.target.value } }); } },
            h("option", { value: "", selected: !picks[index], disabled: true }, "choose"),
            fates().map((fate) => h("option", { value: fate, selected: picks[index] === fate }, fate)))
        : [
            h("span", { class: "rx-strip", role: "img", "aria-label": row.marks.map(([text], at) => `clause ${at}: ${signOf(text)}`).join(", ") }, row.marks.map(([text, style, reason]) =>
              h("span", { class: text === "?" ? "rx-unknown" : `rm-${style}`, title: reason }, text))),
            badge(row.style, row.fate),
          ],
      h("span", { class: "rx-values" },
        ["source", "target"].filter((side) => row[side]).map((side) => h("span", {}, h("b", {}, `${side} `), "(", listed(row[side]), ")",
          side === "source" && barred(row) && [" ", h("i", { class: "rx-unknown" }, "ON ?")])),
        markOf(index, row.fate)),
      // Where the panel is below the rows, a click shows the reasons in place. The panel has them for screen readers.
      !hidden() && index === chosen() && h("div", { class: "rx-inline", "aria-hidden": "true" },
        h("p", { class: "rx-why" }, row.gist, row.near && ` ${row.near}`), row.verdicts.map(verdictView)));
  }

  // A NULL of its own keeps a source row from any partner.
  const barred = (row) => !row.target && row.on?.answer === "unknown";

  // -- the way --------------------------------------------------------------------------------------------------------

  // A station has lanes; every thread of a row goes through one place of one lane. An UPDATE's thread splits where the page is transformed.
  function stations() {
    const found = [];
    const lane = (key, label, rows, style) => ({ key, label, rows, style });
    const all = state.rows.map((_, index) => index);
    const where = (test) => all.filter((index) => test(state.rows[index]));
    if (state.kind === "MERGE") {
      found.push({ key: "read", title: "", lanes: [lane("t", state.tables.target, where((row) => row.target)), lane("s", state.tables.source || "source", where((row) => row.source))] });
      found.push({ key: "join", title: "join", lanes: [...new Set(state.rows.map((row) => row.group))].map((group) => lane(group, group, where((row) => row.group === group))) });
      found.push({ key: "case", title: "CASE", lanes: state.clauses.map((clause) =>
        lane(clause.number, clause.number < 0 ? "none" : clauseLane(clause), where((row) => row.clause === clause.number), clause.style)) });
    } else {
      found.push({ key: "read", title: "", lanes: [lane("t", `${state.tables.target}, WHERE is true`, all)] });
    }
    if (steps.includes("transform")) {
      // In the order of the clauses' lanes, so that threads go straight down where they can.
      const order = state.clauses.map((clause) => clause.number);
      const rows = [...state.rows].sort((one, other) => order.indexOf(one.clause) - order.indexOf(other.clause));
      const kinds = [...new Set(rows.map((row) => row.becomes.join(" + ") || "no change"))];
      found.push({ key: "transform", title: "transform_page", lanes: kinds.map((kind) =>
        lane(kind, kind, where((row) => (row.becomes.join(" + ") || "no change") === kind))) });
    }
    const halves = state.after.rows.map((row, index) => ({ ...row, index }));
    const numbers = [...new Set([...state.writers.map((writer) => writer.number), ...halves.map((row) => row.writer)])];
    found.push({ key: "sinks", title: "", split: true, lanes: numbers.map((number) => {
      const writer = state.writers.find((one) => one.number === number);
      return lane(number, number < 0 ? "some writer" : `writer ${number}${writer ? `: ${writer.rows}` : ""}`, halves.filter((row) => row.writer === number).map((row) => row.index));
    }) });
    const name = (key) => state.steps.find((step) => step.key === key).name;
    for (const key of ["finish", "commit"].filter((key) => steps.includes(key))) found.push({ key, title: "", split: true, lanes: [lane(key, name(key), halves.map((row) => row.index))] });
    return found;
  }

  // Whole words where there is room for all.
  const clauseLane = (clause) => `${clause.number} ${state.clauses.length > 5 ? clause.style : clause.word.replace("DO NOTHING", "nothing")}`;

  function way() {
    if (hidden() && state.kind !== "MERGE") return h("section", { class: "rx-way" }, h("h4", {}, "Path"), h("p", { class: "rm-p" }, "The paths appear with the answers."));
    const list = stations().filter((station) => steps.includes(station.key) && station.lanes.length > 0 && (!hidden() || ["read", "join"].includes(station.key)));
    if (!list.length) return h("section", { class: "rx-way" }, h("h4", {}, "Path"), h("p", { class: "rm-p" }, "No row came this far, or none was recorded."));
    const width = 360, gap = 64, tall = 24;
    const height = list.length * gap;
    const places = list.map((station, level) => {
      const each = width / station.lanes.length;
      const found = new Map();
      station.lanes.forEach((lane, number) => lane.rows.forEach((row, slot) => {
        const x = number * each + (each * (slot + 1)) / (lane.rows.length + 1);
        found.set(row, [...(found.get(row) ?? []), [x, level * gap]]);
      }));
      return found;
    });
    const threads = [], tokens = [];
    const rowOf = (station, id) => (station.split ? state.after.rows[id].of : id);
    const level = Math.max(0, list.findLastIndex((station) => stepOf(station.key) <= at()));
    list.forEach((station, index) => {
      for (const [id, points] of places[index]) {
        const row = rowOf(station, id);
        const style = station.split ? state.after.rows[id].style : index >= 2 || state.kind !== "MERGE" ? state.rows[row].style : "N";
        if (index === level) for (const [x, y] of points) tokens.push({ x, y: y + tall + 6, row, style });
        if (index + 1 >= list.length) continue;
        const next = list[index + 1];
        const targets = next.split && !station.split
          ? state.after.rows.map((half, half_id) => [half, half_id]).filter(([half]) => half.of === id).map(([half, half_id]) => [half_id, half.style])
          : [[id, style]];
        for (const [target, colour] of targets)
          for (const [x1, y1] of points)
            for (const [x2, y2] of places[index + 1].get(target) ?? [])
              threads.push({ x1, y1: y1 + tall, x2, y2, row, style: index + 1 >= 2 ? colour : style, ahead: index >= level });
      }
    });
    const current = chosen();
    const path = ({ x1, y1, x2, y2, row, style, ahead }) => g("path", {
      d: `M${x1.toFixed(1)} ${y1}C${x1.toFixed(1)} ${(y1 + y2) / 2} ${x2.toFixed(1)} ${(y1 + y2) / 2} ${x2.toFixed(1)} ${y2}`,
      class: `rx-thread rx-${style}${ahead ? " rx-ahead" : ""}${row === current ? " rx-chosen" : ""}`,
      click: () => choose(row),
    });
    const drawing = g("svg", { viewBox: `-2 -2 ${width + 4} ${height}`, role: "img", "aria-label": `Paths of ${state.rows.length} rows; the tab Row describes them` }, g("g", { "aria-hidden": "true" },
      threads.filter((one) => one.row !== current).map(path), threads.filter((one) => one.row === current).map(path),
      list.map((station, index) => {
        const each = width / station.lanes.length;
        const here = station.key === steps[at()];
        return g("g", { class: here ? "rx-here" : "" }, station.lanes.map((lane, number) => [
          g("rect", { x: number * each + 1, y: index * gap, width: each - 2, height: tall, class: `rx-station rx-fill-${lane.style ?? "none"}`, click: () => !hidden() && goTo(stepOf(station.key)) }),
          g("text", { x: number * each + each / 2, y: index * gap + 16, class: `rx-label rx-text-${lane.style ?? "none"}` },
            cut(station.title && number === 0 && station.lanes.length === 1 ? `${station.title}: ${lane.label}` : lane.label, each)),
        ]));
      }),
      tokens.map(({ x, y, row, style }) => g("circle", { cx: x, cy: y, r: row === current ? 5 : 3.5, class: `rx-token rx-${style}`, click: () => choose(row) }))));
    return h("section", { class: "rx-way" }, h("h4", {}, "Path"), drawing);
  }

  const cut = (text, width) => {
    const room = Math.max(3, Math.floor(width / 6.6));
    return text.length <= room ? text : `${text.slice(0, room - 1)}\u2026`;
  };

  // -- the panel ------------------------------------------------------------------------------------------------------

  function panel() {
    const tab = hidden() ? "clauses" : local.tab;
    const tabs = h("div", { role: "tablist", class: "rx-tabs", "aria-label": "Details" }, TABS.map(([key, name]) =>
      h("button", {
        role: "tab", id: idOf("tab", key), "aria-controls": tab === key ? idOf("panel", key) : null, "data-key": `tab-${key}`, tabindex: tab === key ? 0 : -1, "aria-selected": tab === key ? "true" : "false", disabled: hidden() && key !== "clauses",
        click: () => open(key),
      }, key === "row" && chosen() >= 0 ? `Row ${state.rows[chosen()].number ?? ""}`.trim() : name)));
    const content = { row: rowPanel, clauses: clausesPanel, writers: writersPanel, calls: callsPanel }[tab]();
    return h("section", { class: "rx-panel" }, tabs, h("div", { role: "tabpanel", id: idOf("panel", tab), "aria-labelledby": idOf("tab", tab), tabindex: 0, "data-key": "tabpanel" }, content));
  }

  function rowPanel() {
    if (!state.rows.length) return h("p", { class: "rm-p" }, "No row is known.");
    if (chosen() < 0) return h("p", { class: "rm-p" }, "Choose a row: click it, or press Tab and the arrow keys.");
    const row = state.rows[chosen()];
    const halves = state.after.rows.filter((half) => half.of === chosen());
    const station = (key, summary, ...content) => steps.includes(key) &&
      h("details", { open: steps[at()] === key, class: "rx-station-words" },
        h("summary", { "data-key": `words-${key}`, click: (event) => { event.preventDefault(); goTo(stepOf(key)); } },
          state.steps[stepOf(key)].name, h("small", {}, summary)), content);
    return [
      h("p", { class: "rx-who" }, h("b", {}, value(row.name)), " ", badge(row.style, row.fate)),
      h("p", { class: "rx-gist" }, row.gist),
      // Why it has no partner is asked at any step; at the join it stands there.
      state.kind === "MERGE" && !row.target && steps[at()] !== "join" && h("p", { class: "rx-gist" }, row.gist.includes(row.reasons[0]) ? "" : row.reasons[0] ?? "", row.near && ` ${row.near}`),
      station("read", !steps.includes("join") ? "WHERE is true" : row.target ? (row.source ? "both sides" : "the target alone") : "the source alone",
        sides(row), !steps.includes("join") && row.verdicts.map(verdictView)),
      station("join", barred(row) ? `${row.group}: ON is unknown` : row.group,
        barred(row) ? h("p", { class: "rm-p" }, "It has no partner: for every target row this is unknown, since NULL equals nothing.") : !row.on && h("p", { class: "rm-p" }, row.reasons[0] ?? ""),
        row.on && condition(row.on), row.near && h("p", { class: "rm-p" }, row.near)),
      station("case", row.clause < 0 ? "no clause" : `clause ${row.clause}`, row.verdicts.map(verdictView)),
      station("distinct", row.distinct[0], h("p", { class: "rm-p" }, row.distinct[1])),
      station("transform", row.becomes.join(" + ") || "no change", halves.length ? turned(state.after.channels, halves) : h("p", { class: "rm-p" }, "The row changes nothing, so no row leaves this step.")),
      station("exchange", [...new Set(row.writers.map(writerName))].join(", ") || "\u2013", halves.map((half) => h("p", { class: "rm-p" }, badge(half.style, half.letter), " ", half.placed || "its rule is unknown"))),
      station("sinks", halves.map((half) => `${half.letter} to ${writerName(half.writer)}`).join(", ") || "\u2013",
        [...new Set(row.writers.filter((number) => number >= 0))].map((number) =>
          h("button", { class: "rx-link", "data-key": `to-writer-${number}`, click: () => { local.focus = '[data-key="tabpanel"]'; open("writers"); } }, `what writer ${number} ${notRun() ? "would hand" : "handed"} over`))),
      station("finish", row.finish[0], h("p", { class: "rm-p" }, row.finish[1])),
      station("commit", row.fate === "none" || !lasts() ? (row.target ? "as it was" : "not in the table") : { DELETE: "gone", INSERT: "added" }[row.fate] ?? "changed", becomes(row)),
    ];
  }

  // A row of a page that is wider than the panel: a channel a line.
  function turned(channels, rows) {
    return h("table", { class: "rm-t rx-turned" },
      h("thead", {}, h("tr", {}, h("td", {}), rows.map((row) => h("th", { scope: "col" }, badge(row.style, row.letter))))),
      h("tbody", {}, channels.map((channel, index) => h("tr", {}, h("th", { scope: "row" }, h("small", {}, channel.number), " ", channel.name), rows.map((row) => h("td", {}, value(row.cells[index])))))));
  }

  // Of options that were not run the pages are known, and no call was made.
  const notRun = () => Boolean(state.no_calls);
  const writerName = (number) => (number < 0 ? "some writer" : `writer ${number}`);

  function sides(row) {
    return h("table", { class: "rm-t" }, ["source", "target"].filter((side) => row[side]).map((side) => h("tbody", {},
      h("tr", {}, h("th", { scope: "row" }, side), state.sides[side].map(({ name }, index) => h("td", {}, h("small", {}, name), h("br"), value(row[side][index])))))));
  }

  const lasts = () => !state.failed && state.steps.at(-1).name === "commit";

  function becomes(row) {
    const columns = state.sides.target;
    if (!row.made) return h("p", { class: "rm-p" }, state.failed ? "The statement fails and changes nothing." : row.fate === "DELETE" ? (lasts() ? "The row is gone." : "The row would be gone.") : row.target ? "The row is unchanged." : "The row is not in the table, as before.");
    return [!lasts() && h("p", { class: "rm-p" }, "The row would be this, but it was rolled back:"), h("table", { class: "rm-t" }, h("tbody", {}, columns.map(({ name }, index) => {
      const old = row.target?.[index], made = row.made[index];
      const text = row.values.find(([column]) => column === name)?.[1];
      return h("tr", {}, h("th", { scope: "row" }, name),
        h("td", {}, row.target && old !== made ? [h("del", {}, value(old)), " \u2192 "] : "", h(row.target && old === made ? "span" : "ins", {}, value(made))),
        h("td", { class: "rm-mut rm-w" }, text ? h("code", {}, text) : ""));
    })))];
  }

  function verdictView(verdict) {
    const clause = state.clauses.find((one) => one.number === verdict.clause) ?? { label: "", word: "", style: "N", text: "" };
    return h("div", { class: "rx-verdict" },
      h("div", {}, h("b", {}, clause.label), " ", badge(clause.style, clause.word), " ", h("em", { class: verdict.fate === "fires" ? "rx-fires" : "" }, verdict.fate)),
      verdict.condition ? condition(verdict.condition) : h("code", { class: "rm-mut" }, clause.text));
  }

  // A condition once, its columns' values beneath it, and the truth of every part beneath that.
  function condition(term) {
    const blamed = term.answer === "unknown" && term.strict;
    return h("div", { class: `rx-term rx-${term.answer.replace(" ", "-")}` },
      h("div", { class: "rx-truth" }, h("code", {}, term.operator ? term.operator : term.text), h("span", {}, term.answer)),
      term.terms.length ? term.terms.map(condition)
        : h("div", { class: "rx-reads" }, term.values.map(([side, name, one]) =>
            h("span", { class: blamed && one === null ? "rx-blamed" : "" }, `${side}.${name} = `, h("b", {}, value(one))))));
  }

  function clausesPanel() {
    return state.clauses.map((clause) => {
      const taken = state.rows.map((row, index) => [row, index]).filter(([row]) => row.clause === clause.number);
      const unknown = state.rows.map((row, index) => [row, index]).filter(([row]) => row.verdicts.some((one) => one.clause === clause.number && one.fate === "unknown"));
      const buttons = (rows) => rows.map(([row, index]) => h("button", { class: "rx-link", "data-key": `take-${clause.number}-${index}`, click: () => choose(index) }, value(row.name)));
      return h("div", { class: `rx-verdict${model.get("clause") === clause.number ? " rx-marked" : ""}` },
        h("button", { class: "rx-link", "data-key": `clause-${clause.number}`, "aria-pressed": model.get("clause") === clause.number ? "true" : "false", disabled: hidden(),
          click: () => set({ clause: model.get("clause") === clause.number ? null : clause.number }) }, badge(clause.style, `${clause.label} ${clause.word}`)),
        hidden() ? "" : h("small", {}, ` ${clause.rows ?? "?"} row${clause.rows === 1 ? "" : "s"}`),
        h("pre", { class: "rm-code" }, clause.text),
        !hidden() && taken.length > 0 && h("p", { class: "rm-p" }, clause.number < 0 ? "leaves " : "takes ", buttons(taken)),
        !hidden() && unknown.length > 0 && h("p", { class: "rm-p" }, h("span", { class: "rx-unknown" }, "?"), " unknown for ", buttons(unknown)));
    });
  }

  function writersPanel() {
    const said = state.writers.some((writer) => writer.stored) && h("p", { class: "rm-p" }, "A fragment describes what a sink stored. It becomes part of the table by finish_merge and the commit.");
    if (!state.writers.length) return h("p", { class: "rm-p" }, state.failed ? "The rows of the writers are unknown: writers report when they finish, and none finished." : "No row left transform_page, so no writer got one.");
    return [said, state.writers.map((writer) => h("div", { class: "rx-verdict" },
      h("b", {}, `writer ${writer.number}`), h("small", {}, ` ${[writer.rows, writer.stored].filter(Boolean).join("; ")}`),
      writer.page.length > 0 && table(`Page of writer ${writer.number}`, writer.channels, writer.page.map((row) => ({ ...row, of: null }))),
      writer.page.length < writer.total && h("p", { class: "rm-p" }, `first ${writer.page.length} of ${writer.total} rows`)))];
  }

  function callsPanel() {
    const untold = state.no_calls && h("p", { class: "rm-p" }, h("span", { class: "rx-tag" }, "not run"), state.no_calls);
    if (!state.calls.length) return untold;
    return [untold, scroll("Calls", h("table", { class: "rm-t" },
      h("thead", {}, h("tr", {}, ["#", "call"].map((name) => h("th", { scope: "col", "aria-label": name === "#" ? "number" : null }, name)))),
      h("tbody", {}, state.calls.map((call) => h("tr", {},
        h("td", { class: "rm-r rm-mut" }, call.order),
        h("td", { class: "rm-w" }, h("code", {}, call.method), h("small", { class: "rm-mut" }, ` ${call.where}`), call.given && h("div", {}, h("small", { class: "rm-mut" }, "with "), call.given), call.gave && h("div", {}, h("small", { class: "rm-mut" }, "gives "), call.gave), call.means && h("div", { class: "rm-mut" }, call.means), carried(call), call.error && h("span", { class: "rm-err" }, ` ${call.error}`)))))))];
  }

  // The rows that the sink of a writer has got.
  function carried(call) {
    if (hidden() || call.writer === null || call.method !== "store_merged_rows") return null;
    const rows = [...new Set(state.after.rows.filter((row) => row.writer === call.writer).map((row) => row.of))];
    const page = h("button", { class: "rx-link", "data-key": `call-${call.order}-page`, click: () => { local.focus = '[data-key="tabpanel"]'; open("writers"); } }, "page");
    return rows.length > 0 && h("div", {}, "with the ", page, ` of writer ${call.writer}, of the rows`, rows.map((of) =>
      h("button", { class: "rx-link", "data-key": `call-${call.order}-${of}`, click: () => { local.focus = '[data-key="tabpanel"]'; choose(of); } }, value(state.rows[of].name))));
  }

  // -- the moment -----------------------------------------------------------------------------------------------------

  const scroll = (label, content) => h("div", { class: "rm-scroll", tabindex: 0, role: "region", "aria-label": label, "data-key": `scroll-${label}` }, content);

  // Where there is little room, a long name takes several lines.
  const broken = (name) => name.split("_").map((part, index) => [index > 0 && ["_", h("br", { class: "rx-break" })], part]);

  function table(name, channels, rows, lead) {
    return scroll(name, h("table", { class: "rm-t", "aria-label": name },
      h("thead", {}, h("tr", {}, lead && h("th", { scope: "col", "aria-label": "row" }, ""), channels.map((channel) =>
        h("th", { scope: "col", class: channel.right ? "rm-r" : "", "aria-label": `${channel.number} ${channel.name}`.trim() }, h("small", {}, channel.number), h("br"), broken(channel.name))))),
      h("tbody", {}, rows.map((row) => h("tr", {
        class: `${row.of !== null && row.of === chosen() ? "rx-mine" : ""}${row.style ? ` rx-line-${row.style}` : ""}${row.gone ? " rx-gone" : ""}${row.room ? " rx-room" : ""}${row.dropped ? " rx-dropped" : ""}`, "aria-hidden": row.room ? "true" : null, click: () => row.of !== null && choose(row.of),
      }, lead && h("td", { class: "rm-mut" }, row.gone ? "run" : lead(row)), row.cells.map((one, index) => h("td", { class: `${channels[index]?.right ? "rm-r" : ""}${channels[index]?.plain ? "rx-plain" : ""}${row.changed?.[index] ? " rx-changed" : ""}` }, value(one))))))));
  }

  function moment() {
    const key = steps[at()];
    if (!state.rows.length) return ["no page", h("p", { class: "rm-p" }, "No page of this statement was recorded.")];
    const name = (row) => [`${state.rows[row.of].number ?? ""} `, value(state.rows[row.of].name)];
    if (!hidden() && key === "read" && state.kind === "MERGE" && !state.failed) return ["Both tables", bothTables()];
    if (hidden() && state.kind !== "MERGE") {
      return ["Rows of the target", table("Current page", state.sides.target.map(({ name, right }) => ({ number: "", name, right })), guesses().map(({ row }) => ({ of: null, cells: row.target })))];
    }
    if (hidden() || key === "read" || key === "join") {
      const sides = ["source", "target"].filter((side) => state.sides[side].length);
      const channels = sides.flatMap((side) => state.sides[side].map(({ name, right }) => ({ number: side, name, right })));
      const rows = state.rows.map((row, of) => ({ of, cells: sides.flatMap((side) => row[side] ?? state.sides[side].map(() => null)) }));
      if (state.kind === "MERGE") {
        channels.push({ number: "", name: "join", right: false, plain: true });
        rows.forEach(({ of, cells }) => cells.push(state.rows[of].group));
      }
      return [key === "read" ? "Rows that meet" : "Joined rows", table("Current page", channels, rows, (row) => state.rows[row.of].number ?? "")];
    }
    if (!state.before.rows.length) return ["no page", h("p", { class: "rm-p" }, "The page at this step is unknown. The step read has the rows of the error.")];
    const other = base !== state;
    const before = other ? beside(state.before, base.before, () => true) : state.before.rows;
    if (key === "case") {
      const decided = before.map((row) => ({ ...row, cells: row.cells.slice(0, state.before.decided) }));
      return ["Rows with the merge_row of the CASE", table("Current page", state.before.channels.slice(0, state.before.decided), decided, name)];
    }
    if (key === "distinct") return ["Page on its way to transform_page", table("Current page", state.before.channels, before, name)];
    const withWriter = stepOf(steps.includes("exchange") ? "exchange" : "sinks") <= at();
    const lead = withWriter ? (row) => [...name(row), ` \u2192 ${writerName(row.writer)}`] : name;
    const rows = other ? beside(state.after, base.after, (one, row) => one.letter === row.letter) : state.after.rows;
    if (key === "transform") return ["Page before and after transform_page", bothPages(before, rows, name)];
    // The sinks do not get what the engine keeps to count by.
    const handed = stepOf("sinks") <= at() ? state.after.handed : state.after.channels.length;
    const hands = key === "commit" ? state.steps[at()].name : key;
    const title = (notRun() ? WOULD[hands] : null) ?? HANDS[hands] ?? "Rows on their way to the store";
    return [title, table("Current page", state.after.channels.slice(0, handed), rows.map((row) => ({ ...row, cells: row.cells.slice(0, handed) })), lead)];
  }

  // The page before and the page after, each row beside what becomes of it: where it becomes several, its own line has room for them.
  function bothPages(before, after, name) {
    const lines = [[], []], ties = new Map();
    for (const of of [...new Set([...before, ...after].map((row) => row.of))].sort((a, b) => a - b)) {
      const [from, to] = [before, after].map((rows) => rows.filter((row) => row.of === of));
      const count = Math.max(1, from.length, to.length), made = to.filter((row) => !row.gone).length;
      for (let at = 0; at < count; at += 1) {
        const right = to[at] ?? { of, cells: state.after.channels.map((_, index) => (index ? "" : "no change")), dropped: true };
        lines[0].push(from[at] ?? { of, cells: state.before.channels.map(() => ""), room: true });
        lines[1].push(right);
        ties.set(right, made === 0 ? "\u2500\u00d7" : made === 1 ? "\u2500\u25b8" : at === 0 ? "\u252c\u25b8" : at === made - 1 ? "\u2514\u25b8" : "\u251c\u25b8");
      }
    }
    const tied = (row) => [h("span", { class: "rx-tie", "aria-hidden": "true" }, ties.get(row)), " ", h("span", { class: "rx-again" }, name(row))];
    const side = (title, label, channels, rows, lead) => h("div", {}, h("h5", {}, title), table(label, channels, rows, lead));
    const [was, is] = [before, after].map((rows) => rows.filter((row) => !row.gone).length);
    return h("div", { class: "rx-pages" },
      side(`before: ${was} row${was === 1 ? "" : "s"}`, "Page before transform_page", state.before.channels, lines[0], (row) => (row.room ? "\u00a0" : name(row))),
      side(`after: ${is} row${is === 1 ? "" : "s"}`, "Page after transform_page", state.after.channels, lines[1], tied));
  }

  // As they are before anything is joined: each source row once, and of the target whatever is known.
  function bothTables() {
    const once = (side, extra) => {
      const seen = new Set();
      const rows = state.rows.map((row, of) => ({ of, cells: row[side], id: side === "source" ? row.number ?? of : row.partner }))
        .filter(({ cells, id }) => cells && !seen.has(id) && seen.add(id));
      return [...rows, ...extra.map(({ cells }) => ({ of: null, cells }))];
    };
    const shown = (side, extra) => state.sides[side].length > 0 &&
      h("div", {}, h("h5", {}, side, tableName(side)), table(`Rows of the ${side}`, state.sides[side].map(({ name, right }) => ({ number: "", name, right })), once(side, extra)));
    return h("div", { class: "rx-both" }, shown("source", []), shown("target", state.others));
  }

  const legend = () => !hidden() && state.steps[at()].legend?.length > 0 &&
    state.steps[at()].legend.map(([page, name]) => state.legends[name] && [
      page && h("h5", { class: "rx-which" }, page),
      h("dl", { class: "rx-legend" }, state.legends[name].map(([name, says]) => h("div", {}, h("dt", {}, name), " ", h("dd", {}, says)))),
    ]);

  function reader() {
    const done = steps[at()] === "commit" && !hidden() && lasts();
    const columns = state.sides.target.map(({ name, right }) => ({ number: "", name, right }));
    if (done) columns.push({ number: "", name: "why", right: false, plain: true });
    const why = (row) => (!done ? [] : [row.clause >= 0 ? `${clauseName(row.clause)} ${row.fate}` : state.kind === "MERGE" ? "no clause fires" : ""]);
    const rows = [];
    // A target row that was matched twice is one row: as it was it stands there once, and not beside what a clause has made of it.
    const acting = new Set(state.rows.filter((row) => done && row.fate !== "none").map((row) => row.partner)), there = new Set();
    state.rows.forEach((row, of) => {
      if (row.partner !== null && (!done || row.fate === "none")) {
        if (acting.has(row.partner) || there.has(row.partner)) return;
        there.add(row.partner);
      }
      if (!done) { if (row.target) rows.push({ of, cells: row.target }); return; }
      if (row.fate === "DELETE") rows.push({ of, cells: [...(row.target ?? []), ...why(row)], style: "D", sign: "\u2212" });
      else if (row.made) rows.push({ of, cells: [...row.made, ...why(row)], style: row.style, sign: row.fate === "INSERT" ? "+" : "~" });
      else if (row.target) rows.push({ of, cells: [...row.target, ...why(row)], sign: "" });
    });
    if (hidden() && state.kind !== "MERGE") rows.splice(0, rows.length, ...guesses().map(({ row }) => ({ of: null, cells: row.target, sign: "" })));
    else for (const { cells } of state.others) rows.push({ of: null, cells: done ? [...cells, state.kind === "MERGE" ? "no partner" : "not chosen"] : cells, sign: "" });
    const rest = (state.untouched ?? 0) - state.others.length;
    return h("section", { class: "rx-reader" }, h("h4", {}, "What a reader sees ", h("small", {}, done ? (notRun() ? "the version that there would be" : "the new version") : "the old version")),
      !columns.length ? h("p", { class: "rm-p" }, "The table is unchanged. Its rows are not in the trace.") :
      table("What a reader sees", columns, rows, done ? (row) => row.sign : undefined),
      state.sample ? h("p", { class: "rm-p" }, "Only these rows of the table: the trace has no others.") :
      rest > 0 ? h("p", { class: "rm-p" }, `and ${rest} row${rest === 1 ? "" : "s"} ${state.apart}`) : "");
  }

  // -- drawing and keys -----------------------------------------------------------------------------------------------

  let waiting = false;
  function later() {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => { waiting = false; draw(); });
  }

  // What had the focus may be gone, or of no use now: it goes to what came in its place, never back to the top of the page.
  function refocus(was) {
    const wanted = [local.focus, was, '.rx-now button:not(:disabled)', '[data-key="tabpanel"]'];
    const found = wanted.map((one) => one && box.querySelector(one)).find((one) => one && !one.disabled);
    found?.focus({ preventScroll: true });
    // Where the focus was led, it is to be seen.
    if (local.focus) found?.scrollIntoView({ block: "nearest" });
  }

  function draw() {
    const focused = box.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const scrolled = new Map([...box.querySelectorAll(".rm-scroll")].map((one) => [one.dataset.key, one.scrollLeft]));
    const listTop = box.querySelector(".rx-list")?.scrollTop ?? 0;
    const [title, page] = moment();
    body.replaceChildren(
      ...filled(h("div"), {}, head()).childNodes,
      h("div", { class: "rx-columns" }, rowList(), way(), panel()),
      h("div", { class: "rx-below" }, h("section", { class: `rx-moment${steps[at()] === "transform" && !hidden() ? " rx-wide" : ""}`, "data-key": "moment", tabindex: -1, "aria-label": "Current page" }, h("h4", {}, "Current page ", h("small", {}, title)), page, legend()), reader()),
      h("p", { class: "rm-meta rx-keys" }, hidden() ? "Keys: Esc ends the guess without an answer" : KEYS));
    for (const one of box.querySelectorAll(".rm-scroll")) one.scrollLeft = scrolled.get(one.dataset.key) ?? 0;
    if (listTop) box.querySelector(".rx-list").scrollTop = listTop;
    if (focused) refocus(`[data-key="${CSS.escape(focused)}"]`);
    local.focus = null;
    announce();
  }

  // What a choice has changed is said to those who do not see it, and nothing else again.
  function announce() {
    const step = state.steps[at()], row = hidden() ? null : state.rows[chosen()];
    const told = {
      way: hidden() ? "Choose for every row what becomes of it, then reveal." : state.trial ? `${state.trial.tag}: ${state.meta.map(([text]) => text).join("")} ${state.trial.says}` : "As it ran.",
      score: isScored() ? scoreWords() : "",
      step: hidden() ? "" : `${step.name}. ${step.says}`,
      row: row ? `${rowName(row)}: ${row.gist}` : "",
      clause: marked() === null ? "" : `Marked: the rows of ${clauseName(marked())}.`,
    };
    const changed = heard && Object.keys(told).filter((name) => told[name] !== heard[name]).map((name) => told[name]);
    if (changed?.length) live.textContent = changed.filter(Boolean).join(" ");
    heard = told;
  }

  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    // Fields keep their keys, and what scrolls those that scroll it; while rows are guessed Esc leaves a field, too.
    if (event.target.closest("select, input, textarea") && !(hidden() && event.key === "Escape")) return;
    if (event.target.closest(".rm-scroll") && /^(Arrow|Home|End)/.test(event.key)) return;
    const inTabs = event.target.closest('[role="tablist"]'), inRows = event.target.closest(".rx-list");
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };
    // Within a list of so many, from one place on.
    const moved = (place, count) => (event.key === "Home" ? 0 : event.key === "End" ? count - 1 : Math.min(count - 1, Math.max(0, place + moves[event.key])));
    const sideways = ["ArrowLeft", "ArrowRight"].includes(event.key), ends = ["Home", "End"].includes(event.key), upright = ["ArrowUp", "ArrowDown"].includes(event.key);
    const step = (to) => { if (event.target.closest(".rx-steps")) local.focus = ".rx-now button"; goTo(to); };
    const row = (to) => { local.focus = `[data-key="row-${to}"]`; choose(to); };
    let taken = true;
    if (hidden()) {
      if (event.key === "Escape") cancel();
      else taken = false;
    } else if (inTabs && (sideways || ends)) {
      const keys = TABS.map(([key]) => key);
      const place = keys.indexOf(local.tab);
      const to = keys[ends ? moved(place, keys.length) : (place + moves[event.key] + keys.length) % keys.length];
      local.focus = `[data-key="tab-${to}"]`;
      open(to);
    } else if (inRows && (upright || ends)) {
      const order = [...box.querySelectorAll(".rx-row")].map((one) => Number(one.dataset.key.slice(4)));
      const place = order.indexOf(chosen());
      row(order[place < 0 && upright ? 0 : moved(place, order.length)]);
    } else if (inRows && (event.key === "Enter" || event.key === " ")) row(Number(event.target.closest(".rx-row")?.dataset.key.slice(4) ?? 0));
    else if (sideways || ends) step(moved(at(), steps.length));
    else if (/^[0-9]$/.test(event.key) && state.clauses.some((one) => one.number === Number(event.key))) {
      local.tab = "clauses";
      set({ clause: model.get("clause") === Number(event.key) ? null : Number(event.key) });
      later();
    } else if (event.key === "p") play();
    else if (event.key === "Escape") open("row");
    else taken = false;
    if (taken) { event.preventDefault(); event.stopPropagation(); }
  });

  const watched = ["row", "step", "clause", "picks", "score"];
  const reading = ["state", ...OPTIONS];
  const onState = () => {
    read();
    later();
  };
  const onRow = () => { local.tab = "row"; };
  const onClause = () => { if (Number.isInteger(model.get("clause"))) local.tab = "clauses"; };
  model.on("change:row", onRow);
  model.on("change:clause", onClause);
  for (const name of reading) model.on(`change:${name}`, onState);
  model.on("change:tries", answered);
  for (const name of watched) model.on(`change:${name}`, later);
  draw();
  return () => {
    clearInterval(local.playing);
    model.off("change:row", onRow);
    clearTimeout(local.asked);
    model.off("change:clause", onClause);
    for (const name of reading) model.off(`change:${name}`, onState);
    model.off("change:tries", answered);
    for (const name of watched) model.off(`change:${name}`, later);
  };
}

export default { render };
