package operate

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"bellwether/internal/admin/view"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/internal/store"
	"bellwether/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ada = server.Operator{Name: "ada", Addr: netip.MustParseAddrPort("192.0.2.7:1234")}

// TestChangesOfAServerThatDoesNotServe: a server that does not serve refuses changes at once, and says when to try
// again.
func TestChangesOfAServerThatDoesNotServe(t *testing.T) {
	cfg := config.Default()
	cfg.Client = ensemble.HostPort{Host: "127.0.0.1"}
	cfg.DataDir, cfg.DataLogDir = "data", "data"
	s, err := server.New(server.Options{Config: cfg, FS: store.NewMem(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := New(s)
	_, err = c.Set(context.Background(), ada, "/a", nil, -1)
	for what, err := range map[string]error{"set": err, "delete": c.Delete(context.Background(), ada, "/a", -1), "close": c.CloseSession(ada, "0x100000000000001")} {
		var e *view.Error
		if !errors.As(err, &e) || e.Kind != view.Busy || e.Do == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSessionIDs: only the form in which servers print a session id is accepted.
func TestSessionIDs(t *testing.T) {
	if id, err := parseSession("0x100000000000001"); err != nil || id != wire.SessionID(0x100000000000001) {
		t.Errorf("%v %v", id, err)
	}
	for _, text := range []string{"", "1", "0x", "0x0", "0x1 ", "0X1", "0x01", "-0x1", "0x1ffffffffffffffff"} {
		if id, err := parseSession(text); err == nil {
			t.Errorf("%q is %v", text, id)
		}
	}
}
