package otel

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"bellwether/embed"
	wire "bellwether/internal/admin/trace"
	"bellwether/zk"
)

// provider returns a provider that keeps its spans in memory.
func provider(t *testing.T) (*sdk.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(kept), sdk.WithIDGenerator(IDs()))
	t.Cleanup(func() {
		if err := p.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p, kept
}

// traced returns a request as its server describes it.
func traced(number uint64, forwarded bool) wire.Trace {
	ms := int64(time.Millisecond)
	return wire.Trace{
		Number: number, Server: 2, Session: "0xfa00000000000001", Cxid: int32(number), Op: "create", Path: "/a", Zxid: "0x100000003", Requests: 1, Forwarded: forwarded,
		Began: time.Unix(1000, 0), TookNS: 9 * ms, Slowest: "quorum", Peer: 3,
		Stages: []wire.Stage{{Name: "decode", FromNS: 0, ToNS: ms}, {Name: "quorum", FromNS: ms, ToNS: 8 * ms}, {Name: "reply", FromNS: 8 * ms, ToNS: 9 * ms}},
		Acks:   []wire.Ack{{Server: 3, AfterNS: 7 * ms}},
	}
}

// TestStagesBecomeSpans shows the spans of a request: one for the request and one for each stage, with the
// times of the server. The parts of the follower and of the leader are in one trace.
func TestStagesBecomeSpans(t *testing.T) {
	p, kept := provider(t)
	e := NewExporter(p)
	if n := e.Export(t.Context(), "a", []wire.Trace{traced(1, false)}); n != 1 {
		t.Errorf("%d traces were exported", n)
	}
	e.Export(t.Context(), "b", []wire.Trace{traced(1, true)})
	spans := kept.GetSpans()
	var names []string
	for _, s := range spans {
		names = append(names, s.Name)
		if s.SpanContext.TraceID() != TraceID(-0x5ffffffffffffff, 1) {
			t.Errorf("%s is in the trace %v", s.Name, s.SpanContext.TraceID())
		}
	}
	if want := []string{"decode", "quorum", "reply", "server create", "decode", "quorum", "reply", "leader create"}; !slices.Equal(names, want) {
		t.Fatalf("spans %v, want %v", names, want)
	}
	request, quorum := spans[3], spans[1]
	if quorum.Parent.SpanID() != request.SpanContext.SpanID() || !quorum.StartTime.Equal(time.Unix(1000, 1e6)) || !quorum.EndTime.Equal(time.Unix(1000, 8e6)) {
		t.Errorf("the stage quorum: %v to %v below %v", quorum.StartTime, quorum.EndTime, quorum.Parent.SpanID())
	}
	if !request.EndTime.Equal(time.Unix(1000, 9e6)) || len(request.Events) != 1 || request.Parent.IsValid() {
		t.Errorf("the request: %+v", request)
	}
}

// TestTracesAreExportedOnce shows that a trace that a server shows again is not exported
// again. After a restart the server numbers its traces from 1, so they are exported.
func TestTracesAreExportedOnce(t *testing.T) {
	p, _ := provider(t)
	e := NewExporter(p)
	for _, c := range []struct {
		all  []wire.Trace
		want int
	}{
		{[]wire.Trace{traced(1, false), traced(2, false)}, 2},
		{[]wire.Trace{traced(1, false), traced(2, false), traced(3, false)}, 1},
		{nil, 0},
		{[]wire.Trace{traced(1, false)}, 1}, // the server was restarted
	} {
		if got := e.Export(t.Context(), "a", c.all); got != c.want {
			t.Errorf("%d of %d traces were exported, want %d", got, len(c.all), c.want)
		}
	}
}

// TestHooksMakeSpans shows that each call of a client makes a span below that of its caller, with the
// session and the number of the request, and that each state of the client makes a span.
func TestHooksMakeSpans(t *testing.T) {
	p, kept := provider(t)
	en, err := embed.Start(t.Context(), embed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer en.Close()
	c, err := zk.Connect(t.Context(), en.Servers(), &zk.Options{Hooks: Hooks(p)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, caller := p.Tracer("test").Start(t.Context(), "caller")
	if _, _, err := c.Create(ctx, "/a", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, "/none", zk.AnyVersion); !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	session := c.Session().ID
	c.Close(t.Context())
	caller.End()
	byName := map[string]tracetest.SpanStub{}
	for _, s := range kept.GetSpans() {
		byName[s.Name] = s
	}
	for _, name := range []string{"zookeeper create2", "zookeeper delete"} {
		s, there := byName[name]
		if !there || s.Parent.SpanID() != caller.SpanContext().SpanID() || len(s.Links) != 1 {
			t.Fatalf("%s: %+v, the spans are %v", name, s, byName)
		}
		cxid := 0
		for _, a := range s.Attributes {
			if a.Key == "zookeeper.cxid" {
				cxid = int(a.Value.AsInt64())
			}
		}
		if s.Links[0].SpanContext.TraceID() != TraceID(int64(session), int32(cxid)) {
			t.Errorf("%s does not link to the trace of the server", name)
		}
	}
	if byName["zookeeper delete"].Status.Code != codes.Error || byName["zookeeper create2"].Status.Code == codes.Error {
		t.Error("the status of a call does not say whether it failed")
	}
	for _, state := range []string{"zookeeper connecting", "zookeeper connected", "zookeeper closed"} {
		if _, there := byName[state]; !there {
			t.Errorf("there is no span %s", state)
		}
	}
}
