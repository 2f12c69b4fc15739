//go:build !nometrics

package metrics

// recording says that counters and summaries record values. The build tag nometrics makes a
// program in which they do not, to measure what metrics cost (interop/compare -metrics).
const recording = true
