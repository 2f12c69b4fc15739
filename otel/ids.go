package otel

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TraceID returns the id of the trace of a request. It is the same at the client, its server
// and the leader.
func TraceID(session int64, cxid int32) trace.TraceID {
	sum := sha256.Sum256(fmt.Appendf(nil, "bellwether session 0x%x cxid %d", session, cxid))
	return trace.TraceID(sum[:16])
}

// traceKey is the key of a context value: the id of the trace that a new root span gets.
type traceKey struct{}

// withTraceID returns a context in which the next root span gets this id.
func withTraceID(ctx context.Context, id trace.TraceID) context.Context {
	return context.WithValue(ctx, traceKey{}, id)
}

// IDs makes the ids of spans. A TracerProvider for an [Exporter] needs it
// (sdk/trace.WithIDGenerator), so that all parts of a request are in one trace.
func IDs() sdk.IDGenerator { return ids{} }

type ids struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, ok := ctx.Value(traceKey{}).(trace.TraceID)
	if !ok {
		rand.Read(id[:])
	}
	return id, newSpanID()
}

func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

// newSpanID returns a random id that is not 0.
func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		rand.Read(id[:])
	}
	return id
}

// sessionOf returns the number of a session that text names in the form 0x…, or 0 if text has another form.
func sessionOf(text string) int64 {
	hex, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(hex, 16, 64)
	if !ok || err != nil {
		return 0
	}
	return int64(n)
}
