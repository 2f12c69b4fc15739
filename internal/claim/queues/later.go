package queues

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// The items of a queue with claims that are not due yet stand apart, where no other library looks:
//
//	<due, 15 digits: ms since 1970>-<name of the item>
//
// The consumer that looks for items moves one that is due to the items. Due is judged by the clock
// of the leader of the ensemble, which stamps every znode: what the consumer knows of it is when
// its own place in the line was made.

const dueDigits = 15

// dueMax is the latest due that a name can hold.
const dueMax = 1e15 - 1

// DuePrefix begins the name of an item that is not due before a time, ahead of its own prefix.
func DuePrefix(due time.Time) string {
	ms := max(due.UnixMilli(), 0)
	if due.After(time.UnixMilli(dueMax)) { // which may be more milliseconds than fit in 64 bits
		ms = dueMax
	}
	return fmt.Sprintf("%0*d-", dueDigits, ms)
}

// laterItem is an item that is not due yet.
type laterItem struct {
	name   string
	due    int64  // ms since 1970
	prefix string // of the item's name
}

// parseLater takes the name of such an item apart.
func parseLater(name string) (laterItem, bool) {
	digits, rest, ok := strings.Cut(name, "-")
	if !ok || len(digits) != dueDigits || strings.Trim(digits, "0123456789") != "" {
		return laterItem{}, false
	}
	item, ok := claim.ParseItem(rest)
	due, err := strconv.ParseInt(digits, 10, 64)
	return laterItem{name, due, strings.TrimSuffix(rest, claim.FormatSeq(item.Seq))}, ok && err == nil
}

// IsLater reports whether a name is that of an item that is not due yet.
func IsLater(name string) bool {
	_, ok := parseLater(name)
	return ok
}

// earliest is the item that is due first; its name is empty where there is none.
func earliest(names []string) (first laterItem) {
	for _, name := range names {
		it, ok := parseLater(name)
		if ok && (first.name == "" || it.due < first.due || it.due == first.due && it.name < first.name) {
			first = it
		}
	}
	return first
}

// serversClock is what is known of the leader's clock: a stamp of it, and a moment at which it
// showed that time or a later one. The consumer's own clocks may be set: only what passes counts, by
// the one that nobody sets.
type serversClock struct {
	stamp int64 // ms since 1970; 0: nothing is known
	at    claim.Moment
}

// see takes a znode's stamp that was read, or made, before now.
func (c *serversClock) see(stat wire.Stat, now claim.Moment) {
	if stat.Ctime > 0 {
		*c = serversClock{stat.Ctime, now}
	}
}

// until is how long it takes at most until the leader's clock shows a time.
func (c serversClock) until(due int64, now claim.Moment) time.Duration {
	shows := c.stamp + (now.Mono - c.at.Mono).Milliseconds()
	return time.Duration(min(due-shows, wakeMax.Milliseconds())) * time.Millisecond
}

// wakeMax is the longest time that is slept at once, for an item that is due in a thousand years.
const wakeMax = time.Hour

// dueNow reports whether an item is due and is to be moved now. While there are others to be
// taken, one is moved by each consumer, lest a thousand that are due at once keep all waiting.
func (t *Take) dueNow() bool {
	if t.later.name == "" || t.found != "" && t.moved {
		return false
	}
	return t.clock.stamp == 0 || t.clock.until(t.later.due, t.Now) <= 0
}

// planLater moves an item that is due to the items, with its data and ACL.
func (t *Take) planLater() {
	if t.clock.stamp == 0 { // the server does not say when a znode was made, or the answer was lost
		t.Ask(func(res []claim.Result) {
			switch t.clock.see(res[0].Stat, t.Now); {
			case errors.Is(res[0].Err, wire.ErrNoNode): // somebody deleted the place
				t.startAnew()
			case t.clock.stamp == 0:
				t.later = laterItem{} // nobody knows when it is due
			}
		}, claim.Op{Kind: claim.OpGet, Path: claim.Join(t.Config.Line, t.place.own)})
		return
	}
	t.move(claim.Join(t.Config.Delayed, t.later.name), claim.Join(t.Config.Items, t.later.prefix), claim.AnyVersion, func() { t.moved = true })
}

// planBury takes an item that comes back again and again out of the queue.
func (t *Take) planBury() {
	item, _ := claim.ParseItem(t.found)
	from, n := claim.Join(t.Config.Items, t.found), t.version
	t.move(from, claim.Join(t.Config.Dead, strings.TrimSuffix(t.found, claim.FormatSeq(item.Seq))), t.version, func() {
		t.Tell(Buried{Item: from, Deliveries: int(n), At: t.Config.Dead})
	})
}

// move makes an item anew at another place and deletes it at its old one, then looks again.
func (t *Take) move(from, to string, version int32, done func()) {
	t.Ask(func(res []claim.Result) {
		if res[0].Err != nil {
			t.moveFailed(res[0].Err)
			return
		}
		ops := []claim.Op{
			{Kind: claim.OpDelete, Path: from, Version: version},
			{Kind: claim.OpCreate, Path: to, Data: res[0].Data, Like: from, Sequential: true, Persistent: true},
		}
		t.Ask(func(res []claim.Result) {
			switch err := res[0].Err; {
			case err == nil:
				done()
				t.lookAgain()
			case res[0].Failed == 1 && errors.Is(err, wire.ErrNoNode):
				t.Ask(t.made, claim.Op{Kind: claim.OpParents, Path: path.Dir(to)})
			default:
				t.moveFailed(err)
			}
		}, claim.Op{Kind: claim.OpMulti, Path: from, Ops: ops})
	}, claim.Op{Kind: claim.OpGet, Path: from})
}

// moveFailed: another consumer may have moved or taken it.
func (t *Take) moveFailed(err error) {
	if errors.Is(err, wire.ErrNoNode) || errors.Is(err, wire.ErrBadVersion) {
		t.faster()
	} else {
		t.refuse(err)
	}
}

// wake is how soon an item that is waited for is due; 0: there is none.
func (t *Take) wake() time.Duration {
	if t.Over() || !t.Connected || t.Asked != 0 || !t.waits || t.later.name == "" {
		return 0
	}
	return max(t.clock.until(t.later.due, t.Now), time.Millisecond)
}

// Buried: an item that was delivered so often and came back each time is below At now.
type Buried struct {
	Item       string
	Deliveries int
	At         string
}

func (h Buried) String() string {
	return fmt.Sprintf("item %s came back after %d deliveries and goes to %s", h.Item, h.Deliveries, h.At)
}
