package peer

import "bellwether/internal/metrics"

// Figures holds counters since the start. Those of a [Mesh] count notifications, and those
// of [Links] count packets.
type Figures struct {
	Connections   metrics.Counter // connections made, in either direction
	Refused       metrics.Counter // connections refused; the reason is logged
	DialFailures  metrics.Counter
	Sent          metrics.Counter
	Received      metrics.Counter
	Replaced      metrics.Counter // replaced by a newer message before they were sent
	Dropped       metrics.Counter // received and not valid, or sent to a server that is not known
	BytesSent     metrics.Counter
	BytesReceived metrics.Counter
}
