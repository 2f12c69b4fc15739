package recipe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

const place = "/app/workers/host-a"

// register makes a Registration at place that is closed with the test.
func register(t *testing.T, c *zk.Client, data string, o *RegistrationOptions) *Registration {
	t.Helper()
	r, err := Register(t.Context(), c, place, []byte(data), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.Close(ctx)
	})
	return r
}

// stands fails the test unless the znode belongs to the client and holds the data.
func (s *fakeServer) stands(t *testing.T, c *zk.Client, data string) {
	t.Helper()
	got, owner, ok := s.node(place)
	if !ok || got != data || owner != c.Session().ID {
		t.Errorf("the znode is %q of %v (%v), want %q of %v", got, owner, ok, data, c.Session().ID)
	}
}

// awaitStanding waits for a later status with this Standing.
func awaitStanding(t *testing.T, s RegistrationStatus, want Standing) RegistrationStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for {
		var err error
		if s, err = s.Next(ctx); err != nil {
			t.Fatalf("never %v: %+v", want, s)
		}
		if s.Standing == want {
			return s
		}
	}
}

// TestRegistrationStandsUntilClosed also checks that a registration costs two requests if the parents
// exist, and what its status says.
func TestRegistrationStandsUntilClosed(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		r := register(t, c, "one", nil) // also creates the parents
		s.stands(t, c, "one")
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := s.node(place); ok {
			t.Error("it stands after Close")
		}
		if st := r.Status(); st.Standing != Absent || !st.Final() || !errors.Is(st.Err, zk.ErrClosed) {
			t.Errorf("status after Close: %+v", st)
		}
		if err := r.Set(t.Context(), nil); !errors.Is(err, zk.ErrClosed) {
			t.Errorf("Set after Close: %v", err)
		}
		before := s.asked()
		r = register(t, c, "two", nil)
		if n := s.asked() - before; n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
		if st := r.Status(); st.Standing != Stands || st.Session != c.Session().ID || st.Token == 0 {
			t.Errorf("status: %+v", st)
		}
	})
}

// TestRegistrationIsKeptAcrossSessions checks that a later session has the latest data.
func TestRegistrationIsKeptAcrossSessions(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		r := register(t, c, "one", nil)
		if err := r.Set(t.Context(), []byte("two")); err != nil {
			t.Fatal(err)
		}
		s.stands(t, c, "two")
		for range 3 {
			was := r.Status()
			s.expire(c.Session().ID)
			over := awaitStanding(t, was, Absent) // because of the end of the session or, if that is noticed first, of the znode
			if over.Err != nil && !errors.Is(over.Err, zk.ErrSessionExpired) {
				t.Errorf("absent: %v", over.Err)
			}
			now := awaitStanding(t, over, Stands)
			if now.Session == was.Session || now.Token <= was.Token {
				t.Errorf("stands by %v %v after %v %v", now.Session, now.Token, was.Session, was.Token)
			}
			s.stands(t, c, "two")
		}
	})
}

// TestRegistrationIsDoubtfulWhileDisconnected also checks that a reconnect in time costs nothing.
func TestRegistrationIsDoubtfulWhileDisconnected(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		r := register(t, c, "one", nil)
		was := r.Status()
		before := s.asked()
		s.setAway(true)
		s.cut(c)
		doubtful := awaitStanding(t, was, Doubtful)
		time.Sleep(3 * time.Second)
		s.setAway(false)
		if st := awaitStanding(t, doubtful, Stands); st.Token != was.Token {
			t.Errorf("token %v, want %v", st.Token, was.Token)
		}
		synctest.Wait()
		if n := s.asked() - before; n > 1 {
			t.Errorf("%d requests, want only the one that sets the watches again", n)
		}
	})
}

// TestRegistrationIsMadeAgain checks that a registration whose znode is deleted creates the znode again,
// and that this costs one watch event.
func TestRegistrationIsMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		register(t, c, "one", nil)
		synctest.Wait()
		before := s.eventCount()
		s.delete(place)
		synctest.Wait()
		s.stands(t, c, "one")
		if n := s.eventCount() - before; n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

// TestChecklist07ReplacesTheZnodeOfAnOwnOlderSession checks that the znode of a dead process is replaced at
// once, in one transaction, if its session is named.
func TestChecklist07ReplacesTheZnodeOfAnOwnOlderSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		old := s.connect(zk.Options{})
		if _, err := Register(t.Context(), old, place, []byte("old"), nil); err != nil {
			t.Fatal(err)
		}
		before := old.Detach().ID // the process ends, but its session lives
		synctest.Wait()
		c := s.connect(zk.Options{})
		s.hook(func(_ *peer, op wire.OpCode, path string) fate {
			if op == wire.OpDelete {
				t.Error("deleted outside the transaction")
			}
			return normal
		})
		register(t, c, "new", &RegistrationOptions{Predecessors: []wire.SessionID{before}})
		s.stands(t, c, "new")
		s.hook(nil)
		s.expire(before)
		synctest.Wait()
		s.stands(t, c, "new") // the end of the old session does not delete it
	})
}

// TestChecklist07ReplacementChecksTheOwner checks that the znode is left alone if it gets another owner
// between the read and the replacement.
func TestChecklist07ReplacementChecksTheOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		old, other := s.connect(zk.Options{}), s.connect(zk.Options{})
		r, err := Register(t.Context(), old, place, []byte("old"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Set(t.Context(), []byte("older")); err != nil {
			t.Fatal(err)
		}
		before := old.Detach().ID
		synctest.Wait()
		c := s.connect(zk.Options{})
		taken := false
		s.hook(func(p *peer, op wire.OpCode, path string) fate {
			if op == wire.OpMulti && !taken {
				taken = true
				s.expire(before)
				if _, _, err := other.Create(t.Context(), place, []byte("other"), zk.Ephemeral); err != nil {
					t.Error(err)
				}
			}
			return normal
		})
		_, err = Register(t.Context(), c, place, []byte("new"), &RegistrationOptions{Predecessors: []wire.SessionID{before}})
		var owned *OwnedError
		if !errors.As(err, &owned) || owned.Owner != other.Session().ID || !taken {
			t.Errorf("Register: %v, want the other's ownership", err)
		}
		s.stands(t, other, "other")
	})
}

// TestChecklist07OwnZnodeOfTheSessionBefore checks that the znode of the client's expired session, which
// still exists, is replaced at once.
func TestChecklist07OwnZnodeOfTheSessionBefore(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		r := register(t, c, "one", nil)
		was := r.Status()
		s.forgetSession(c.Session().ID) // the znode stays
		for st := was; st.Session == was.Session; {
			st = awaitStanding(t, st, Stands)
		}
		s.stands(t, c, "one")
	})
}

// TestRegistrationDoesNotTouchAForeignZnode checks that Register returns an error that names the owner, or
// waits.
func TestRegistrationDoesNotTouchAForeignZnode(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.connect(zk.Options{}), s.connect(zk.Options{})
		first := register(t, a, "a", nil)
		_, err := Register(t.Context(), b, place, []byte("b"), nil)
		var owned *OwnedError
		if !errors.As(err, &owned) || owned.Owner != a.Session().ID || !strings.Contains(err.Error(), place) {
			t.Errorf("Register: %v", err)
		}
		s.stands(t, a, "a")

		before := s.eventCount()
		stood := make(chan *Registration)
		go func() { stood <- register(t, b, "b", &RegistrationOptions{Wait: true}) }()
		synctest.Wait()
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-stood
		s.stands(t, b, "b")
		if n := s.eventCount() - before; n != 2 { // one of the waiting client, and one of the closed one itself
			t.Errorf("%d events for one departure", n)
		}
	})
}

// TestRegistrationWaitsForTheOtherClient checks a registration that waits for a znode that another
// client created while this client had no session.
func TestRegistrationWaitsForTheOtherClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.connect(zk.Options{}), s.connect(zk.Options{})
		r := register(t, a, "a", nil)
		was := r.Status()
		s.setAway(true)
		s.expire(a.Session().ID)
		if _, _, err := b.Create(t.Context(), place, []byte("b"), zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		s.setAway(false)
		var owned *OwnedError
		st := awaitStanding(t, was, Absent)
		for !errors.As(st.Err, &owned) {
			st = awaitStanding(t, st, Absent)
		}
		if owned.Owner != b.Session().ID {
			t.Errorf("status: %+v", st)
		}
		if err := b.Delete(t.Context(), place, 0); err != nil {
			t.Fatal(err)
		}
		awaitStanding(t, st, Stands)
		s.stands(t, a, "a")
	})
}

// TestRegistrationSurvivesLostReplies checks that Register, Set and Close succeed although the first write of each
// gets no reply, whether or not it was carried out.
func TestRegistrationSurvivesLostReplies(t *testing.T) {
	for _, f := range []fate{dropReply, dropAll} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			lose := map[wire.OpCode]int{wire.OpCreate2: 1, wire.OpSetData: 1, wire.OpDelete: 1}
			s.put("/app", "")
			s.put("/app/workers", "")
			s.hook(func(_ *peer, op wire.OpCode, path string) fate {
				if path == place && lose[op] > 0 {
					lose[op]--
					return f
				}
				return normal
			})
			c := s.connect(zk.Options{})
			r := register(t, c, "one", nil)
			s.stands(t, c, "one")
			if err := r.Set(t.Context(), []byte("two")); err != nil {
				t.Fatal(err)
			}
			s.stands(t, c, "two")
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, _, ok := s.node(place); ok {
				t.Error("it stands after Close")
			}
		})
	}
}

// TestRegistrationRefused checks that Register returns the error of a server that refuses it.
func TestRegistrationRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpCreate2 {
				return deny
			}
			return normal
		})
		if _, err := Register(t.Context(), s.connect(zk.Options{}), place, nil, nil); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("Register: %v", err)
		}
		s.hook(nil)
		s.put("/app", "")
		s.put("/app/workers", "")
		s.put(place, "")
		var owned *OwnedError
		if _, err := Register(t.Context(), s.connect(zk.Options{}), place, nil, nil); !errors.As(err, &owned) || owned.Owner != 0 {
			t.Errorf("Register over a persistent znode: %v", err)
		}
		if _, err := Register(t.Context(), s.connect(zk.Options{}), "nowhere", nil, nil); !errors.Is(err, zk.ErrBadArguments) {
			t.Errorf("Register at no path: %v", err)
		}
	})
}

// TestCancelledRegisterLeavesNothing checks Register and Close, also if the connection comes back late.
func TestCancelledRegisterLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		r := register(t, c, "data", nil)
		s.setAway(true)
		s.cut(c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed without a connection: %v", err)
		}
		s.setAway(false)
		time.Sleep(2 * time.Second)
		if _, _, ok := s.node(r.Path()); ok {
			t.Error("a znode is left over that belongs to no Registration")
		}
	})
}

// TestFinalStatusIsTheLast checks that no status follows a final one, whatever happens to the session while the
// znode is removed.
func TestFinalStatusIsTheLast(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{OneSession: true})
		r := register(t, c, "data", nil)
		s.setAway(true)
		s.cut(c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = r.Close(ctx)
		last := r.Status()
		s.expire(c.Session().ID)
		s.setAway(false)
		<-r.done
		select {
		case <-last.Changed():
			t.Errorf("%+v follows %+v", r.Status(), last)
		default:
		}
		if !last.Final() || !errors.Is(last.Err, zk.ErrClosed) {
			t.Errorf("status: %+v", last)
		}
	})
}

// TestCancelledRegisterLooksForWhatItMayHaveMade checks that the background removal begins with a sync,
// because the server of the new connection may not know the znode yet.
func TestCancelledRegisterLooksForWhatItMayHaveMade(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "")
		s.put("/app/workers", "")
		ctx, cancel := context.WithCancel(t.Context())
		var after []wire.OpCode
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpCreate2 {
				cancel()
				return dropReply
			}
			if op != wire.OpPing {
				after = append(after, op)
			}
			return normal
		})
		if _, err := Register(ctx, s.connect(zk.Options{}), place, nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		time.Sleep(3 * time.Second)
		if _, _, ok := s.node(place); ok {
			t.Error("a znode is left over that belongs to no Registration")
		}
		if len(after) == 0 || after[0] != wire.OpSync {
			t.Errorf("looked with %v", after)
		}
	})
}

// TestRegistrationDoubtfulAtOnce checks that a connection that is lost as soon as the znode exists does
// not count as a refusal.
func TestRegistrationDoubtfulAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Registration{b: &agent{}, status: RegistrationStatus{link: newStatusLink()}}
		r.follow(Stands, nil, false)
		r.follow(Doubtful, wire.ErrConnectionLoss, false)
		out := make(chan error, 1)
		go func() { out <- r.first(t.Context()) }()
		synctest.Wait()
		r.follow(Stands, nil, false)
		if err := <-out; err != nil {
			t.Error(err)
		}
	})
}

// TestRegistrationLeavesNoWatch checks that no watch is left on a foreign znode, which may exist for ever.
func TestRegistrationLeavesNoWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		for _, dir := range []string{"/app", "/app/workers", place} {
			s.put(dir, "")
		}
		c := s.connect(zk.Options{})
		var owned *OwnedError
		if _, err := Register(t.Context(), c, place, nil, nil); !errors.As(err, &owned) {
			t.Fatal(err)
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.nodes[place].watch); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}
