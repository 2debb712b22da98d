//go:build race

package check

// raceEnabled says that the tests run under the race detector.
const raceEnabled = true

// shrink divides how large a test's texts are. What only their length costs has no
// race to be found, and costs ten times as much under the detector.
const shrink = 4
