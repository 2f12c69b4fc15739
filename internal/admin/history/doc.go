// Package history keeps the last hour of a server's most important figures: requests,
// latency, connections, memory and others. [History.Run] reads them every few seconds on
// one goroutine, into rings of a fixed size. [History.Series] returns them, and
// [Series.Chart] draws one as SVG, in colours that the style sheet of the page sets.
//
// The figures come from the server's metrics, so the package costs the server nothing per
// request. A figure that cannot be known, such as a latency while there are no requests, is
// missing in its series, and the line of the chart has a gap there.
//
// One mutex guards the rings. Read history.go first, then figures.go, chart.go.
package history
