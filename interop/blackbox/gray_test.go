package blackbox

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
)

// The scenes of this file are gray failures: something is wrong with one server, and yet it answers.
// Each reports the longest time without an acknowledged write and how many leaders were established,
// while the fault lasts and after its end.

// grayFor is how long a gray failure lasts at least.
const grayFor = 20 * time.Second

// tc runs commands of tc on a host, and Heal removes the queues that they create.
func (w *network) tc(i int, commands ...string) {
	w.t.Helper()
	w.slow[i] = true
	w.tcIn(w.hosts[i].name, commands...)
}

// tcIn runs commands of tc in a namespace.
func (w *network) tcIn(name string, commands ...string) {
	w.t.Helper()
	for _, c := range commands {
		args := append([]string{"-n", name}, strings.Fields(c)...)
		if out, err := exec.Command("tc", args...).CombinedOutput(); err != nil {
			w.t.Fatalf("tc %s: %v: %s", c, err, out)
		}
	}
}

// DropLarge drops the packets of more than about 700 bytes that a host sends.
func (w *network) DropLarge(i int) {
	w.t.Helper()
	w.tc(i, "qdisc add dev eth0 root tbf rate 1gbit burst 700 latency 200ms")
}

// Lose drops 1 % of the packets that a host sends: those with five in 512 values of the IP header's
// identification, which the sender counts up with each packet.
func (w *network) Lose(i int) {
	w.t.Helper()
	w.tc(i, loss("eth0", "0 0x7f", "0x41 0x1ff")...)
}

// loss returns the commands that make a device drop the packets whose identification matches.
func loss(dev string, matches ...string) []string {
	commands := []string{
		"qdisc add dev DEV root handle 1: htb default 1",
		"class add dev DEV parent 1: classid 1:1 htb rate 10gbit",
		"class add dev DEV parent 1: classid 1:2 htb rate 10gbit",
		"qdisc add dev DEV parent 1:2 handle 2: bfifo limit 1",
	}
	for _, m := range matches {
		commands = append(commands, "filter add dev DEV parent 1: protocol ip u32 match u16 "+m+" at 4 flowid 1:2")
	}
	for i := range commands {
		commands[i] = strings.ReplaceAll(commands[i], "DEV", dev)
	}
	return commands
}

// dropped returns how many packets a host's queues have dropped.
func (w *network) dropped(i int) (n int) {
	w.t.Helper()
	out, err := exec.Command("tc", "-n", w.hosts[i].name, "-s", "qdisc", "show", "dev", "eth0").CombinedOutput()
	w.must(err)
	for _, part := range strings.Split(string(out), "(dropped ")[1:] {
		count, _, _ := strings.Cut(part, ",")
		k, err := strconv.Atoi(count)
		w.must(err)
		n += k
	}
	return n
}

// epoch returns the newest epoch that a server reports.
func (s *scene) epoch() (newest int64) {
	s.t.Helper()
	for _, server := range s.e.Servers {
		newest = max(newest, server.Zxid()>>32)
	}
	return newest
}

// gray lets a fault of the leader last for a while, ends it, and reports both times. goesOn must keep
// the fault alive until the channel is closed; nil: it lasts by itself.
func (s *scene) gray(size int, begin func(leader int), goesOn func(leader int, until <-chan time.Time)) {
	s.t.Helper()
	leader := s.awaitWhole()
	m := s.measure(size, s.others(leader)...)
	m.goesOn(s.t)
	epoch := s.epoch()
	begin(leader)
	until := time.After(grayFor)
	if goesOn != nil {
		goesOn(leader, until)
	} else {
		<-until
	}
	m.goesOn(s.t)
	writes, longest := m.read()
	now := s.epoch()
	s.t.Logf("the fault: %d writes, longest time without one %v, leaders established: %d", writes, longest.Round(time.Millisecond), now-epoch)
	m.end()
	s.Heal()
	after := s.measure(size, s.others(leader)...)
	after.goesOn(s.t)
	s.awaitWhole()
	after.goesOn(s.t)
	_, longest = after.read()
	s.t.Logf("after its end: longest time %v, leaders established: %d", longest.Round(time.Millisecond), s.epoch()-now)
	after.end()
	s.finish()
}

// TestGrayOneWayLink drops everything that the leader sends to the other servers, and in a second
// scene everything that they send to it. Clients still reach it.
func TestGrayOneWayLink(t *testing.T) {
	for name, cut := range map[string]func(s *scene, leader, other int){
		"the leader is mute": func(s *scene, leader, other int) { s.Cut(leader, other) },
		"the leader is deaf": func(s *scene, leader, other int) { s.Cut(other, leader) },
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, setting{extra: usual, alone: true})
			s.gray(100, func(leader int) {
				for _, i := range s.others(leader) {
					cut(s, leader, i)
				}
			}, nil)
		})
	}
}

// TestGrayLargePackets drops the large packets that the leader sends, while clients write values that
// need such packets.
func TestGrayLargePackets(t *testing.T) {
	s := begin(t, setting{extra: usual, alone: true})
	s.gray(5000, s.DropLarge, func(leader int, until <-chan time.Time) {
		<-until
		if n := s.dropped(leader); n == 0 {
			t.Error("no packet was dropped")
		}
	})
}

// TestGrayLoss loses 1 % of the packets that the leader sends.
func TestGrayLoss(t *testing.T) {
	s := begin(t, setting{extra: usual, alone: true})
	s.gray(5000, s.Lose, func(leader int, until <-chan time.Time) {
		<-until
		if n := s.dropped(leader); n == 0 {
			t.Error("no packet was dropped")
		}
	})
}

// TestGrayClock lets the wall clock of the leader jump an hour ahead, two hours back, and so on. No leader
// may be established because of it.
func TestGrayClock(t *testing.T) {
	s := begin(t, setting{extra: usual, alone: true})
	epoch := s.epoch()
	s.gray(100, func(int) {}, func(leader int, until <-chan time.Time) {
		clock := target.WallClockOf(t, s.e.Servers[leader].PID())
		for by := time.Hour; ; by = -2 * by {
			clock.Jump(t, by)
			select {
			case <-until:
				return
			case <-time.After(2 * time.Second):
			}
			by = max(min(by, 24*time.Hour), -24*time.Hour)
		}
	})
	if now := s.epoch(); now != epoch {
		t.Errorf("epoch %d after %d", now, epoch)
	}
}

// TestGrayPauses stops the process of the leader again and again for 900 ms. That is less than every
// timeout: the shortest is the second after which a follower gives up a silent leader. Another server must
// take over, once.
func TestGrayPauses(t *testing.T) {
	s := begin(t, setting{extra: usual, alone: true})
	first, epoch := s.awaitWhole(), s.epoch()
	s.gray(100, func(int) {}, func(leader int, until <-chan time.Time) {
		for {
			s.signal(leader, syscall.SIGSTOP)
			<-time.After(900 * time.Millisecond)
			s.signal(leader, syscall.SIGCONT)
			select {
			case <-until:
				return
			case <-time.After(700 * time.Millisecond):
			}
		}
	})
	if leader := s.awaitWhole(); leader == first {
		t.Errorf("server %d still leads", first+1)
	}
	if now := s.epoch(); now != epoch+1 {
		t.Errorf("%d leaders were established, want 1", now-epoch)
	}
}
