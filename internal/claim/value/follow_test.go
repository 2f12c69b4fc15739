package value

import (
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// TestAnnouncementsAreToldOnce checks that a configuration is told once, that an older one is not told, and that a
// follower watches the znode again after each event.
func TestAnnouncementsAreToldOnce(t *testing.T) {
	f := NewAnnouncements("/app/config")
	step := func(ev claim.Event) *claim.Request {
		f.Step(claim.Moment{}, ev)
		return f.Ready().Request
	}
	announced := func(token, mzxid wire.Zxid, data string) claim.Result {
		return claim.Result{Data: Announcement{Token: token, Data: []byte(data)}.Text("/bid"), Stat: wire.Stat{Mzxid: mzxid}}
	}
	r := step(claim.Attached{Session: 1})
	for _, c := range []struct {
		answer claim.Result
		data   string
		news   bool
	}{
		{claimtest.None, "", false},
		{announced(5, 10, "one"), "one", true},
		{announced(5, 11, "two"), "two", true},
		{announced(5, 11, "two"), "two", false},   // the znode was not written
		{announced(4, 12, "other"), "two", false}, // of an earlier leader
		{claim.Result{Data: []byte("text"), Stat: wire.Stat{Mzxid: 13}}, "two", false},
		{claimtest.None, "two", false},
		{announced(6, 14, "three"), "three", true},
	} {
		if r == nil || r.Ops[0].Kind != claim.OpAwait || r.Ops[0].Path != "/app/config" {
			t.Fatalf("it asks for %+v", r)
		}
		if again := step(claim.Reply{N: r.N, Results: []claim.Result{c.answer}}); again != nil {
			t.Errorf("%+v: it asks for %+v before the watch fires", c, again)
		}
		if a, news := f.Next(); string(a.Data) != c.data || news != c.news {
			t.Errorf("%+v: it tells %q, new: %v", c, a.Data, news)
		}
		if a, news := f.Next(); string(a.Data) != c.data || news {
			t.Errorf("%+v: it tells %q again, new: %v", c, a.Data, news)
		}
		r = step(claim.Fired{Path: "/app/config", N: r.N})
	}
}
