package embed

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// short is the time for which a test checks that something does not happen.
const short = 150 * time.Millisecond

// soon returns a context for a call that must not return before the context ends.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), short)
	t.Cleanup(cancel)
	return ctx
}

// stays fails the test if a call returns before its context ends.
func stays(t *testing.T, what string, call func(ctx context.Context) error) {
	t.Helper()
	if err := call(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s: %v, want no answer in time", what, err)
	}
}

func get(c *zk.Client, path string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, _, err := c.Get(ctx, path)
		return err
	}
}

// TestExpire shows that the ephemerals of an expired session are deleted and that its client learns of the end.
func TestExpire(t *testing.T) {
	for _, servers := range []int{1, 3} {
		everyMode(t, func(t *testing.T, o Options) {
			o.Servers = servers
			e := started(t, o)
			// The client is connected to each server in turn, so also to followers.
			for id := 1; id <= servers; id++ {
				c := connectedTo(t, e, e.Server(id), &zk.Options{OneSession: true, SessionTimeout: time.Minute})
				create(t, c, "/mine", "", zk.Ephemeral)
				must(t, e.Expire(patient(t), c.Session().ID))
				for s := range c.States(patient(t)) {
					if s.State == zk.Expired {
						break
					}
				}
				_, _, err := c.Get(patient(t), "/mine")
				wants(t, err, zk.ErrSessionExpired)
				other := connected(t, e, nil)
				must(t, other.Sync(patient(t), "/"))
				if _, found, err := other.Exists(patient(t), "/mine"); found || err != nil {
					t.Errorf("the ephemeral is there: %v, %v", found, err)
				}
				wants(t, e.Expire(patient(t), c.Session().ID), ErrNoSession)
			}
		})
	}
}

// TestCutClient cuts the link of a client in one direction and heals it. What was sent meanwhile must arrive.
func TestCutClient(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		e := started(t, o)
		a, b := connected(t, e, nil), connected(t, e, nil)
		create(t, a, "/x", "one")
		_, _, w, err := a.GetW(patient(t), "/x")
		must(t, err)
		session := Session(a.Session().ID)

		set := func(data string) <-chan error {
			answered := make(chan error, 1)
			go func() {
				_, err := a.Set(patient(t), "/x", []byte(data), -1)
				answered <- err
			}()
			return answered
		}

		// Nothing from the server arrives, neither reply nor event, although the server carries out the write.
		e.Cut(e.Server(1), session)
		answered := set("two")
		eventually(t, "the write is carried out", func() bool { return reads(t, b, "/x") == "two" })
		select {
		case err := <-answered:
			t.Errorf("an answer came over a link that is cut: %v", err)
		case <-w.Done():
			t.Error("an event came over a link that is cut")
		case <-soon(t).Done():
		}
		e.Mend(e.Server(1), session)
		if _, err := w.Wait(patient(t)); err != nil {
			t.Errorf("the event after the cut: %v", err)
		}
		must(t, <-answered)

		// Nothing from the client arrives. The write is carried out when the link is healed.
		e.Cut(session, e.Server(1))
		answered = set("three")
		select {
		case err := <-answered:
			t.Errorf("an answer to what cannot have come: %v", err)
		case <-soon(t).Done():
		}
		holds(t, b, "/x", "two")
		e.Heal()
		must(t, <-answered)
		holds(t, b, "/x", "three")
		if n := len(e.Faults()); n != 0 {
			t.Errorf("%d faults are left", n)
		}
	})
}

// reads returns the data of a znode.
func reads(t *testing.T, c *zk.Client, path string) string {
	t.Helper()
	data, _, err := c.Get(patient(t), path)
	must(t, err)
	return string(data)
}

// TestCutClientMoves shows that a client that is cut off from its server continues its session at another
// server.
func TestCutClientMoves(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		o.Servers = 3
		e := started(t, o)
		c := connected(t, e, &zk.Options{SessionTimeout: 5 * time.Second})
		create(t, c, "/mine", "", zk.Ephemeral)
		session := c.Session().ID
		at := func() *Server {
			for id := 1; id <= 3; id++ {
				if e.Server(id).Address() == c.State().Server {
					return e.Server(id)
				}
			}
			return nil
		}
		first := at()
		e.Cut(first, Session(session))
		eventually(t, "it is at another server", func() bool {
			s := at()
			return s != nil && s != first
		})
		if _, found, err := c.Exists(patient(t), "/mine"); err != nil || !found || c.Session().ID != session {
			t.Errorf("session %v was %v; found %v, %v", c.Session().ID, session, found, err)
		}
	})
}

// TestDelayClient shows that a delay of a link, in either direction, delays each reply by at least that time.
func TestDelayClient(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		e := started(t, o)
		c := connected(t, e, nil)
		create(t, c, "/x", "one")
		for _, way := range []struct{ from, to Endpoint }{{Clients, e.Server(1)}, {e.Server(1), Clients}} {
			const late = 100 * time.Millisecond
			e.Delay(way.from, way.to, late)
			if f := e.Faults(); len(f) != 1 || f[0].Delay != late || f[0].String() == "" {
				t.Errorf("faults %v", f)
			}
			began := time.Now()
			must(t, get(c, "/x")(patient(t)))
			if took := time.Since(began); took < late {
				t.Errorf("an answer came after %v", took)
			}
			e.Delay(way.from, way.to, 0)
			must(t, get(c, "/x")(patient(t)))
		}
	})
}

// TestCutLeader cuts everything that the leader sends to the other servers. Another server must lead, and it
// must carry out the writes of the old leader's client after the link is healed.
func TestCutLeader(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		o.Servers = 3
		e := started(t, o)
		old, err := e.Leader(patient(t))
		must(t, err)
		for id := 1; id <= 3; id++ {
			if other := e.Server(id); other != old {
				e.Cut(old, other)
			}
		}
		eventually(t, "another one leads", func() bool {
			for id := 1; id <= 3; id++ {
				if s := e.Server(id); s != old && s.Leads() {
					return true
				}
			}
			return false
		})
		e.Heal()
		must(t, e.AwaitServing(patient(t)))
		create(t, connectedTo(t, e, old, nil), "/x", "")
	})
}

// TestLoseNextReply shows for every kind of create that its reply is lost and that the create is carried out.
func TestLoseNextReply(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		e := started(t, o)
		c := connected(t, e, nil)
		for path, mode := range map[string]zk.CreateOption{"/a": zk.Persistent, "/b": zk.Container} {
			lost := e.LoseNextReply(wire.OpCreate)
			if got := e.RepliesToLose(); !slices.Equal(got, []wire.OpCode{wire.OpCreate}) {
				t.Errorf("to be lost: %v", got)
			}
			must(t, c.Sync(patient(t), "/")) // replies to other operations are not lost
			_, _, err := c.Create(patient(t), path, nil, mode)
			wants(t, err, zk.ErrConnectionLoss)
			<-lost
			if got := e.RepliesToLose(); len(got) > 0 {
				t.Errorf("still to be lost: %v", got)
			}
			if _, found, err := c.Exists(patient(t), path); err != nil || !found {
				t.Errorf("%s: found %v, %v", path, found, err)
			}
		}
		// CreateProtected finds out that its create was carried out.
		lost := e.LoseNextReply(wire.OpCreate)
		if _, _, err := c.CreateProtected(patient(t), "/p-", nil, zk.Ephemeral|zk.Sequential); err != nil {
			t.Error(err)
		}
		<-lost
		kids, _, err := c.Children(patient(t), "/")
		if err != nil || len(kids) != 4 { // also counts /zookeeper
			t.Errorf("children %v, %v", kids, err)
		}
	})
}

// TestDelayWatches shows that watch events are delayed and that no reply overtakes an event.
func TestDelayWatches(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		const late = 100 * time.Millisecond
		e := started(t, o)
		a, b := connected(t, e, nil), connected(t, e, nil)
		create(t, a, "/x", "one")
		_, _, w, err := b.GetW(patient(t), "/x")
		must(t, err)
		e.DelayWatches(late)
		if got := e.WatchDelay(); got != late {
			t.Errorf("events are late by %v", got)
		}
		began := time.Now()
		_, err = a.Set(patient(t), "/x", []byte("two"), -1)
		must(t, err)
		if data, _, err := b.Get(patient(t), "/x"); err != nil || string(data) == "two" && time.Since(began) < late {
			t.Errorf("%q, %v, after %v: the new state came before the event", data, err, time.Since(began))
		}
		if _, err := w.Wait(patient(t)); err != nil || time.Since(began) < late {
			t.Errorf("the event came after %v, %v", time.Since(began), err)
		}
	})
}

// TestPause shows that a paused server answers nothing, and answers again after it is resumed.
func TestPause(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		e := started(t, o)
		c := connected(t, e, nil)
		create(t, c, "/x", "one")
		must(t, e.Server(1).Pause())
		must(t, e.Server(1).Pause()) // a second Pause changes nothing
		if !e.Server(1).Paused() || e.Server(1).Role() != "paused" {
			t.Error("it is not paused")
		}
		stays(t, "a read", get(c, "/x"))
		must(t, e.Server(1).Resume())
		holds(t, c, "/x", "one")
	})
}

// TestPauseLeader shows that another server leads while the leader is paused, and that exactly one server leads
// after the paused one is resumed.
func TestPauseLeader(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		o.Servers = 3
		e := started(t, o)
		old, err := e.Leader(patient(t))
		must(t, err)
		must(t, old.Pause())
		var next *Server
		eventually(t, "another one leads", func() bool {
			for id := 1; id <= 3; id++ {
				if s := e.Server(id); s != old && s.Leads() {
					next = s
				}
			}
			return next != nil
		})
		create(t, connectedTo(t, e, next, nil), "/x", "one")
		must(t, old.Resume())
		c := connectedTo(t, e, old, nil)
		holds(t, c, "/x", "one") // the server knows the later term; on a busy machine it may be elected again
		eventually(t, "exactly one server leads", func() bool {
			leaders := 0
			for id := 1; id <= 3; id++ {
				if e.Server(id).Leads() {
					leaders++
				}
			}
			return leaders == 1
		})
	})
}

// TestHangDisk makes the disk of the leader hang. Another server must lead, and the old leader must follow it
// when its disk answers. A server that was stopped, killed or crashed while its disk hung must have all data
// when the disk answers.
func TestHangDisk(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		for _, dir := range []string{"", t.TempDir()} {
			o.Servers, o.Dir = 3, dir
			e := started(t, o)
			c := connected(t, e, nil)
			create(t, c, "/x", "one")
			s, err := e.Leader(patient(t))
			must(t, err)
			s.HangDisk()
			create(t, c, "/y", "two")
			eventually(t, "another one leads", func() bool {
				next, err := e.Leader(patient(t))
				return err == nil && next != s
			})
			s.ResumeDisk()
			for i, end := range []func() error{s.Stop, s.Kill, s.Crash} {
				must(t, s.AwaitServing(patient(t)))
				s.HangDisk()
				path := string('a' + rune(i))
				create(t, c, "/"+path, path)
				_ = end() // Stop reports that the server could not close its files
				if s.Running() || !s.DiskHangs() {
					t.Errorf("end %d: it runs: %v; its disk hangs: %v", i, s.Running(), s.DiskHangs())
				}
				s.ResumeDisk()
				must(t, s.Start())
				must(t, s.AwaitServing(patient(t)))
				holds(t, connectedTo(t, e, s, nil), "/"+path, path)
			}
			must(t, e.Close())
		}
	})
}

// TestServerEndsAndStarts shows that acknowledged data survives a crash, a kill and a stop, and that a crash
// loses data that was never fsynced.
func TestServerEndsAndStarts(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		for _, dir := range []string{"", t.TempDir()} {
			o.Dir = dir
			e := started(t, o)
			s := e.Server(1)
			for i, end := range []func() error{s.Crash, s.Kill, s.Stop, s.Crash} {
				c := connected(t, e, nil)
				path := string('a' + rune(i))
				create(t, c, "/"+path, path)
				must(t, end())
				if s.Running() || s.Role() != "down" || s.Err() != nil {
					t.Errorf("after end %d it runs: %v, %v", i, s.Role(), s.Err())
				}
				wants(t, end(), ErrNotRunning)
				wants(t, s.Pause(), ErrNotRunning)
				if err := c.Err(); err != nil {
					t.Error(err)
				}
				must(t, s.Start())
				wants(t, s.Start(), ErrRunning)
				must(t, s.AwaitServing(patient(t)))
				holds(t, c, "/"+path, path)
			}
		}
	})
}

// TestCrashOfTwo crashes two servers of three. The third must not serve alone. When one of the two is back, all
// acknowledged data must be there.
func TestCrashOfTwo(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		o.Servers = 3
		e := started(t, o)
		c := connected(t, e, nil)
		create(t, c, "/x", "one")
		must(t, e.Server(1).Crash())
		must(t, e.Server(3).Crash())
		eventually(t, "it does not serve", func() bool { return e.Server(2).Role() == "looking" })
		must(t, e.Server(3).Start())
		must(t, e.AwaitServing(patient(t)))
		holds(t, c, "/x", "one")
	})
}

// TestSkewClock shows that the times of znodes follow the clock of the leader.
func TestSkewClock(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		e := started(t, o)
		c := connected(t, e, nil)
		const skew = 1000 * time.Hour
		e.Server(1).SkewClock(-skew)
		_, stat, err := c.Create(patient(t), "/x", nil)
		must(t, err)
		if early := time.Since(time.UnixMilli(stat.Ctime)); early < skew || early > skew+time.Hour {
			t.Errorf("the znode was made %v ago", early)
		}
		if e.Server(1).Skew() != -skew {
			t.Error("the skew is", e.Server(1).Skew())
		}
	})
}

// TestCrashLosesWhatWasNotFsynced shows that with NoSync a crash loses acknowledged data that was not fsynced,
// and that a kill and a stop do not.
func TestCrashLosesWhatWasNotFsynced(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		e := started(t, Options{NoSync: true, Dir: dir})
		s := e.Server(1)
		again := func(end func() error) *zk.Client {
			must(t, end())
			must(t, s.Start())
			must(t, s.AwaitServing(patient(t)))
			return connected(t, e, nil)
		}
		create(t, connected(t, e, nil), "/a", "")
		create(t, again(s.Kill), "/b", "")
		create(t, again(s.Stop), "/c", "")
		c := again(s.Crash)
		kids, _, err := c.Children(patient(t), "/")
		must(t, err)
		if slices.Contains(kids, "c") {
			t.Errorf("in %q after a crash: %v", dir, kids)
		}
		create(t, c, "/d", "")
		must(t, again(s.Crash).Sync(patient(t), "/"))
	}
}

// TestDelayServers shows that a write takes at least as long as a message to a follower and its answer.
func TestDelayServers(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		const late = 30 * time.Millisecond
		o.Servers = 3
		e := started(t, o)
		leader, err := e.Leader(patient(t))
		must(t, err)
		c := connectedTo(t, e, leader, nil)
		for id := 1; id <= 3; id++ {
			if s := e.Server(id); s != leader {
				e.Delay(leader, s, late)
				e.Delay(s, leader, late)
			}
		}
		began := time.Now()
		create(t, c, "/x", "")
		if took := time.Since(began); took < 2*late {
			t.Errorf("a write took %v", took)
		}
	})
}

// TestStopAnswersReceivedRequests shows that a server that is stopped answers the requests that it has received.
func TestStopAnswersReceivedRequests(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		e := started(t, o)
		c := connected(t, e, nil)
		create(t, c, "/x", "")
		e.Delay(e.Server(1), Clients, 50*time.Millisecond) // so that replies are still on their way when the server is stopped
		answered := make(chan error)
		for range 100 {
			go func() {
				_, err := c.Set(patient(t), "/x", []byte("new"), -1)
				answered <- err
			}()
		}
		l := e.Server(1).life.Load()
		eventually(t, "the first write is applied", func() bool { return l.srv.Tree().LastZxid() > 2 })
		must(t, e.Server(1).Stop())
		good := 0
		for range 100 {
			if err := <-answered; err == nil {
				good++
			}
			if good == 1 {
				e.Server(1).Start() // the client sends the rest after the next start
			}
		}
		if good == 0 {
			t.Error("no write was answered")
		}
	})
}
