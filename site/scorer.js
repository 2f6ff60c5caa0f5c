// The order of search results: guides before reference pages, which contain nearly every word.
var REFERENCE = /^(docs\/(functions|options|types|errors|stores-.*|trino-differences|connector-reference|gaps|speed|decisions\/.*)|site\/.*|CONTRIBUTING|CHANGELOG)$/;
var Scorer = {
  // A result is [page, title, anchor, description, score, file, kind].
  score: (result) => (REFERENCE.test(result[0]) && result[6] !== "object" ? result[4] / 4 : result[4]),
  objNameMatch: 11,
  // A name that only contains the word comes after pages about it.
  objPartialMatch: -4,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
