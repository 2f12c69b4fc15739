package otel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"bellwether/zk"
)

// Hooks returns hooks for zk.Options that make a span of each call. The span is a child of the
// span in the call's context, and links to the trace in which the servers describe the request.
func Hooks(p trace.TracerProvider) zk.Hooks { return hooks{p.Tracer(scope)} }

type hooks struct{ tracer trace.Tracer }

func (h hooks) CallBegins(ctx context.Context, op zk.OpCode, path string) func(zk.CallEnd) {
	_, span := h.tracer.Start(ctx, "zookeeper "+op.String(), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "zookeeper"), attribute.String("db.operation.name", op.String()), attribute.String("zookeeper.path", path)))
	return func(e zk.CallEnd) {
		if e.Server != "" {
			span.SetAttributes(attribute.String("server.address", e.Server))
		}
		if e.Session != 0 {
			span.SetAttributes(attribute.String("zookeeper.session", e.Session.String()), attribute.Int("zookeeper.cxid", int(e.Cxid)),
				attribute.String("zookeeper.zxid", e.Zxid.String()))
			span.AddLink(trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: TraceID(int64(e.Session), e.Cxid), SpanID: newSpanID(), Remote: true})})
		}
		if e.Err != nil {
			span.SetStatus(codes.Error, e.Err.Error())
		}
		span.End()
	}
}

// StateChanged makes a span of no length for each change of the client's state.
func (h hooks) StateChanged(s zk.Status) {
	_, span := h.tracer.Start(context.Background(), "zookeeper "+s.State.String(), trace.WithTimestamp(s.Since), trace.WithAttributes(
		attribute.String("db.system.name", "zookeeper"), attribute.String("zookeeper.session", s.Session.String()), attribute.String("server.address", s.Server)))
	if s.Err != nil {
		span.SetAttributes(attribute.String("zookeeper.reason", s.Err.Error()))
	}
	span.End(trace.WithTimestamp(s.Since))
}
