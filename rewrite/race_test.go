//go:build race

package rewrite

// raceEnabled says that the tests run under the race detector.
const raceEnabled = true
