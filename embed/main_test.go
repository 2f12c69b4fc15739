package embed

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bellwether/zk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitMax is the longest time that a test waits for a condition.
const waitMax = 3 * time.Minute

// patient returns a context that ends after waitMax.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	t.Cleanup(cancel)
	return ctx
}

// started returns an ensemble that is closed at the end of the test.
func started(t testing.TB, o Options) *Ensemble {
	t.Helper()
	if o.Logger == nil && testing.Verbose() {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	e, err := Start(patient(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

// connected returns a client that is detached at the end of the test.
func connected(t testing.TB, e *Ensemble, o *zk.Options) *zk.Client {
	t.Helper()
	return dialled(t, e, e.Servers(), o)
}

// connectedTo returns a client of a single server.
func connectedTo(t testing.TB, e *Ensemble, s *Server, o *zk.Options) *zk.Client {
	t.Helper()
	return dialled(t, e, s.Address(), o)
}

func dialled(t testing.TB, e *Ensemble, servers string, o *zk.Options) *zk.Client {
	t.Helper()
	if o == nil { // long enough that the session does not expire on a machine that is stopped for a while
		o = &zk.Options{SessionTimeout: 40 * time.Second}
	}
	c, err := zk.Connect(patient(t), servers, e.reaching(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Detach() })
	return c
}

// must fails the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails the test unless err is the expected error.
func wants(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// create creates a znode.
func create(t testing.TB, c *zk.Client, path, data string, o ...zk.CreateOption) {
	t.Helper()
	_, _, err := c.Create(patient(t), path, []byte(data), o...)
	if err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

// holds fails the test unless a znode has the expected data.
func holds(t testing.TB, c *zk.Client, path, want string) {
	t.Helper()
	ctx := patient(t)
	must(t, c.Sync(ctx, path))
	data, _, err := c.Get(ctx, path)
	if err != nil || string(data) != want {
		t.Fatalf("%s holds %q, %v; want %q", path, data, err, want)
	}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := patient(t)
	for !ok() {
		if sleep(ctx, checkInterval) != nil {
			t.Fatal("never: " + what)
		}
	}
}

// everyMode runs a test with sockets and with InMemory.
func everyMode(t *testing.T, test func(t *testing.T, o Options)) {
	t.Run("sockets", func(t *testing.T) { test(t, Options{}) })
	t.Run("memory", func(t *testing.T) { test(t, Options{InMemory: true}) })
}
