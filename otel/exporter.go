package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	wire "bellwether/internal/admin/trace"
)

// scope is the name under which spans are made.
const scope = "bellwether"

// Exporter makes spans of the requests that servers have traced.
type Exporter struct {
	tracer trace.Tracer
	last   map[string]uint64 // for each source, the number of the last trace that was exported
}

// NewExporter returns an Exporter that makes its spans with a provider, which must use [IDs].
func NewExporter(p trace.TracerProvider) *Exporter {
	return &Exporter{tracer: p.Tracer(scope), last: map[string]uint64{}}
}

// Decode reads the answer of a server to the four-letter word trac.
func Decode(text []byte) ([]wire.Trace, error) { return wire.Decode(text) }

// Export makes spans of those traces of a server that were not exported before, and returns
// how many there were. source names the server, for example by its address. If the numbers of
// the traces start again, because the server was restarted, all its traces are new.
func (e *Exporter) Export(ctx context.Context, source string, all []wire.Trace) int {
	last := e.last[source]
	if n := len(all); n > 0 && all[n-1].Number < last {
		last = 0
	}
	exported := 0
	for i := range all {
		if t := &all[i]; t.Number > last {
			e.export(ctx, t)
			last = t.Number
			exported++
		}
	}
	e.last[source] = last
	return exported
}

// export makes the spans of one request.
func (e *Exporter) export(ctx context.Context, t *wire.Trace) {
	name, kind := "server "+t.Op, trace.SpanKindServer
	if t.Forwarded {
		name, kind = "leader "+t.Op, trace.SpanKindInternal
	}
	ctx = withTraceID(ctx, TraceID(sessionOf(t.Session), t.Cxid))
	ctx, span := e.tracer.Start(ctx, name, trace.WithNewRoot(), trace.WithSpanKind(kind), trace.WithTimestamp(t.Began), trace.WithAttributes(attributes(t)...))
	for _, s := range t.Stages {
		_, stage := e.tracer.Start(ctx, s.Name, trace.WithTimestamp(t.Began.Add(time.Duration(s.FromNS))))
		stage.End(trace.WithTimestamp(t.Began.Add(time.Duration(s.ToNS))))
	}
	for _, a := range t.Acks {
		span.AddEvent("ack", trace.WithTimestamp(t.Began.Add(time.Duration(a.AfterNS))), trace.WithAttributes(attribute.Int64("zookeeper.server", int64(a.Server))))
	}
	if t.Err != 0 {
		span.SetStatus(codes.Error, t.Error)
	}
	span.End(trace.WithTimestamp(t.Began.Add(time.Duration(t.TookNS))))
}

// attributes returns the attributes that describe a request.
func attributes(t *wire.Trace) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("db.system.name", "zookeeper"), attribute.String("db.operation.name", t.Op),
		attribute.Int64("zookeeper.server", int64(t.Server)), attribute.String("zookeeper.session", t.Session),
		attribute.Int("zookeeper.cxid", int(t.Cxid)), attribute.String("zookeeper.zxid", t.Zxid), attribute.String("zookeeper.slowest_stage", t.Slowest),
	}
	if t.Path != "" {
		all = append(all, attribute.String("zookeeper.path", t.Path))
	}
	if t.Client != "" {
		all = append(all, attribute.String("client.address", t.Client))
	}
	if t.Peer != 0 {
		all = append(all, attribute.Int64("zookeeper.slowest_peer", int64(t.Peer)))
	}
	if t.Requests > 1 {
		all = append(all, attribute.Int64("zookeeper.requests", t.Requests))
	}
	return all
}
