package blackbox

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/ensemble"
)

// killFollower kills a follower and returns its index. It is not the second server, of which the strangers have a
// certificate.
func (s *scene) killFollower() int {
	s.t.Helper()
	for _, i := range s.others(s.awaitWhole()) {
		if i != 1 {
			s.e.Servers[i].Kill()
			return i
		}
	}
	s.t.Fatal("no follower")
	return 0
}

// TestHostileClaimsOfAnAbsentMemberWithTLS sends every kind of message between servers in the name of a member
// that does not run, so that no connection of the member itself stands in the way. With TLS nothing changes.
func TestHostileClaimsOfAnAbsentMemberWithTLS(t *testing.T) {
	dir, other := issueFor(t), issueFor(t)
	s := begin(t, withTLS(dir))
	absent := s.killFollower()
	ids := []ensemble.ServerID{ensemble.ServerID(absent + 1)}
	s.steadyUnder([]*stranger{
		{what: "without TLS", ids: ids},
		{what: "without a certificate", tls: shows(t, dir, ""), ids: ids},
		{what: "with a certificate of another authority", tls: shows(t, other, "server.pem"), ids: ids},
		{what: "with the certificate of a client", tls: shows(t, dir, "client.pem"), ids: ids},
		{what: "with the certificate of another member", tls: shows(t, dir, "second.pem"), ids: ids},
	}, absent)
}

// TestHostileClaimsOfAnAbsentMemberWithoutTLS does the same without TLS. The program can join in the name of the
// member, and end a term with the claim that the member has accepted a later epoch, but not one far ahead. The
// servers elect a leader again, and no acknowledged write is lost.
func TestHostileClaimsOfAnAbsentMemberWithoutTLS(t *testing.T) {
	s := begin(t, setting{})
	absent := s.killFollower()
	p := &stranger{what: "with the id of an absent member", ids: []ensemble.ServerID{ensemble.ServerID(absent + 1)}}
	p.dial = s.hosts[s.clientHost()].dial
	s.load.awaitWrites(5, s.clientsOf([]int{absent})...)
	before := s.steady(absent)
	s.attack(p, before.epoch)
	if p.got.Load() == 0 {
		t.Error("no server has answered, so nothing was tried")
	}
	s.load.awaitWrites(5, s.clientsOf([]int{absent})...)
	now := s.steady(absent)
	t.Logf("epoch %d, before %d", now.epoch, before.epoch)
	if now.epoch < before.epoch || now.epoch >= 1<<30 {
		t.Errorf("the epoch went from %d to %d", before.epoch, now.epoch)
	}
	s.finish()
}

// noEpochSkipped fails the test if the epoch has risen by more than the number of times that a server has
// looked for a leader. It counts only servers that run now; a server that has ended may have looked more
// often.
func (s *scene) noEpochSkipped(before, now steady) {
	s.t.Helper()
	was := map[int]int{}
	for i, server := range s.others(before.down...) {
		was[server] = before.looked[i]
	}
	looked := 0
	for i, server := range s.others(now.down...) {
		looked = max(looked, now.looked[i]-was[server])
	}
	s.t.Logf("epoch %d, before %d; a server looked %d times", now.epoch, before.epoch, looked)
	if raised := int(now.epoch) - int(before.epoch); raised < 0 || raised > looked {
		s.t.Errorf("the epoch rose from %d to %d, and no server looked for a leader more than %d times", before.epoch, now.epoch, looked)
	}
}

// underAttack runs f while strangers attack again and again with messages of an epoch. f begins when the first
// of them has sent all its messages once; rounds counts the attacks that are complete.
func (s *scene) underAttack(strangers []*stranger, before steady, f func(rounds *atomic.Int64)) {
	ctx, stop := context.WithCancel(s.t.Context())
	var rounds atomic.Int64
	first, done := make(chan struct{}), make(chan struct{})
	defer func() {
		stop()
		<-done
	}()
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, p := range strangers {
				s.attack(p, before.epoch)
				if rounds.Add(1) == 1 {
					close(first)
				}
			}
		}
	}()
	<-first
	f(&rounds)
}

// TestHostileProcessDuringElectionsWithTLS kills leaders while programs attack without a pause. Each election
// raises the epoch by one for each time that a server looks for a leader, at most, and the new term goes on
// under the same attack.
func TestHostileProcessDuringElectionsWithTLS(t *testing.T) {
	dir := issueFor(t)
	s := begin(t, withTLS(dir))
	var strangers []*stranger
	for _, p := range []*stranger{
		{what: "with the certificate of a client", tls: shows(t, dir, "client.pem"), ids: []ensemble.ServerID{1, 2, 3}},
		{what: "with the certificate of another member", tls: shows(t, dir, "second.pem"), ids: []ensemble.ServerID{1, 3}},
	} {
		p.dial = s.hosts[s.clientHost()].dial
		strangers = append(strangers, p)
	}
	before := s.steady()
	s.underAttack(strangers, before, func(rounds *atomic.Int64) {
		s.e.Servers[before.leader].Kill()
		s.load.awaitWrites(5, s.clientsOf([]int{before.leader})...)
		now := s.steady(before.leader)
		s.noEpochSkipped(before, now)
		for end := rounds.Load() + int64(len(strangers)) + 1; rounds.Load() < end; {
			s.load.awaitWrites(5, s.clientsOf(now.down)...)
		}
		s.unchanged("after the election", now)
	})
	for _, p := range strangers {
		s.unanswered(p)
	}
	s.finish()
}

// TestHostileProcessDuringElectionsWithoutTLS does the same without TLS, where the program can vote, and can
// join in the name of the dead leader. When it ends, a leader is elected, and no acknowledged write is lost.
func TestHostileProcessDuringElectionsWithoutTLS(t *testing.T) {
	s := begin(t, setting{})
	p := &stranger{what: "with all ids", ids: []ensemble.ServerID{1, 2, 3}, dial: s.hosts[s.clientHost()].dial}
	before := s.steady()
	s.underAttack([]*stranger{p}, before, func(rounds *atomic.Int64) {
		s.e.Servers[before.leader].Kill()
		for end := rounds.Load() + 2; rounds.Load() < end; {
			<-time.After(20 * time.Millisecond)
		}
	})
	s.load.awaitWrites(5, s.clientsOf([]int{before.leader})...)
	now := s.steady(before.leader)
	t.Logf("epoch %d, before %d", now.epoch, before.epoch)
	s.finish()
}
