//go:build race

package recipe

// raceDetector: a thousand participants would take minutes.
const raceDetector = true
