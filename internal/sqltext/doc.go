// Package sqltext reads the text of SQL without its tree: the bounds that a text has
// to keep before the parser may read it, its tokens, what a message may show of it,
// how names and strings are quoted, and which bytes belong together.
//
// It knows no policy and no rule: what is wrong with a text is a [Fault].
package sqltext
