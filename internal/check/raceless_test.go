//go:build !race

package check

// raceEnabled says that the tests run under the race detector.
const raceEnabled = false

// shrink divides how large a test's texts are.
const shrink = 1
