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

// Items of a queue with claims that are not due yet are kept below a separate znode, which other libraries
// do not read. Their names are:
//
//	<due, 15 digits: ms since 1970>-<name of the item>
//
// The first consumer in the line moves an item that is due to the other items. The clock of the ensemble's
// leader decides when it is due. The leader puts its time into every new znode, and the consumer knows it
// from the creation time of the consumer's bid in the line.

const dueDigits = 15

// dueMax is the latest due time that a name can contain, in ms since 1970.
const dueMax = 1e15 - 1

// DuePrefix returns the first part of the name of an item that must not be taken before due. The prefix of
// the item follows it.
func DuePrefix(due time.Time) string {
	ms := max(due.UnixMilli(), 0)
	if due.After(time.UnixMilli(dueMax)) { // such a time may not fit into 64 bits as milliseconds
		ms = dueMax
	}
	return fmt.Sprintf("%0*d-", dueDigits, ms)
}

// delayedItem is an item that is not due yet.
type delayedItem struct {
	name   string
	due    int64  // ms since 1970
	prefix string // prefix of the name that the item gets when it is moved
}

// parseDelayed parses the name of an item that is not due yet.
func parseDelayed(name string) (delayedItem, bool) {
	digits, rest, ok := strings.Cut(name, "-")
	if !ok || len(digits) != dueDigits || strings.Trim(digits, "0123456789") != "" {
		return delayedItem{}, false
	}
	item, ok := claim.ParseItem(rest)
	due, err := strconv.ParseInt(digits, 10, 64)
	return delayedItem{name, due, strings.TrimSuffix(rest, claim.FormatSeq(item.Seq))}, ok && err == nil
}

// IsDelayed reports whether a name is that of an item that is not due yet.
func IsDelayed(name string) bool {
	_, ok := parseDelayed(name)
	return ok
}

// earliest returns the item that is due first. Its name is empty if there is none.
func earliest(names []string) (first delayedItem) {
	for _, name := range names {
		it, ok := parseDelayed(name)
		if ok && (first.name == "" || it.due < first.due || it.due == first.due && it.name < first.name) {
			first = it
		}
	}
	return first
}

// serversClock estimates the leader's clock. stamp is a time of that clock, and at is a moment at which
// the leader's clock showed stamp or a later time. Only the monotonic clock of the consumer counts, because
// its wall clock may be set.
type serversClock struct {
	stamp int64 // ms since 1970; 0: unknown
	at    claim.Moment
}

// see records the creation time of a znode that was read or created before now.
func (c *serversClock) see(stat wire.Stat, now claim.Moment) {
	if stat.Ctime > 0 {
		*c = serversClock{stat.Ctime, now}
	}
}

// until returns how long it takes at most until the leader's clock shows due (ms since 1970). The result
// is never more than wakeMax.
func (c serversClock) until(due int64, now claim.Moment) time.Duration {
	shows := c.stamp + (now.Mono - c.at.Mono).Milliseconds()
	return time.Duration(min(due-shows, wakeMax.Milliseconds())) * time.Millisecond
}

// wakeMax is the longest time that until returns. It avoids an overflow for an item that is due in a
// thousand years.
const wakeMax = time.Hour

// dueNow reports whether an item is due and must be moved now. While other items can be taken, each
// consumer moves only one. Otherwise a thousand items that become due together would delay all consumers.
func (t *Take) dueNow() bool {
	if t.delayed.name == "" || t.found != "" && t.moved {
		return false
	}
	return t.clock.stamp == 0 || t.clock.until(t.delayed.due, t.Now) <= 0
}

// planDelayed moves a due item to the other items, with its data and ACL.
func (t *Take) planDelayed() {
	if t.clock.stamp == 0 { // the server sent no creation time, or the answer was lost
		t.Ask(func(res []claim.Result) {
			switch t.clock.see(res[0].Stat, t.Now); {
			case errors.Is(res[0].Err, wire.ErrNoNode): // another client deleted the bid
				t.startAnew()
			case t.clock.stamp == 0:
				t.delayed = delayedItem{} // without the leader's time the item is ignored until the next look
			}
		}, claim.Get(claim.Join(t.Config.Line, t.place.own)))
		return
	}
	t.move(claim.Join(t.Config.Delayed, t.delayed.name), claim.Join(t.Config.Items, t.delayed.prefix), claim.AnyVersion, func() { t.moved = true })
}

// planDeadLetter moves an item that was delivered too often to the queue of dead items.
func (t *Take) planDeadLetter() {
	item, _ := claim.ParseItem(t.found)
	from, n := claim.Join(t.Config.Items, t.found), t.version
	t.move(from, claim.Join(t.Config.Dead, strings.TrimSuffix(t.found, claim.FormatSeq(item.Seq))), t.version, func() {
		t.Report(DeadLetter{Item: from, Deliveries: int(n), At: t.Config.Dead})
	})
}

// move creates a copy of an item at another path and deletes the original, in one transaction. The
// consumer then looks for items again.
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
				t.AskOne(t.tookParents, claim.MakeParents(path.Dir(to)))
			default:
				t.moveFailed(err)
			}
		}, claim.Multi(from, ops...))
	}, claim.Get(from))
}

// moveFailed processes a failed move. Another consumer may have moved or taken the item.
func (t *Take) moveFailed(err error) {
	if errors.Is(err, wire.ErrNoNode) || errors.Is(err, wire.ErrBadVersion) {
		t.outpaced()
	} else {
		t.refuse(err)
	}
}

// wake returns the time until the next item is due; 0 if the consumer does not wait for one.
func (t *Take) wake() time.Duration {
	if t.Over() || !t.Connected || t.Asked != 0 || !t.waits || t.delayed.name == "" {
		return 0
	}
	return max(t.clock.until(t.delayed.due, t.Now), time.Millisecond)
}

// DeadLetter reports that an item came back after Deliveries deliveries, and was moved below At.
type DeadLetter struct {
	Item       string
	Deliveries int
	At         string
}

func (h DeadLetter) String() string {
	return fmt.Sprintf("item %s came back after %d deliveries and goes to %s", h.Item, h.Deliveries, h.At)
}
