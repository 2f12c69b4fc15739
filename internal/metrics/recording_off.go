//go:build nometrics

package metrics

// recording is false with the build tag nometrics: see recording.go.
const recording = false
