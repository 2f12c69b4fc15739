package theatre

import (
	"cmp"
	"slices"
	"time"
)

// deliveries returns the messages of an election, in the order of time. Equal messages from
// one server to another become one delivery, which counts them.
func (e *Election) deliveries(start time.Time) []delivery {
	var all []delivery
	waiting := map[message][]int{} // sent messages that nobody has heard yet
	for i := range e.records {
		r, began := &e.records[i], e.began(i).Sub(start).Milliseconds()
		for _, v := range r.SentVotes {
			for _, to := range v.To {
				m := message{r.Server, to, v.State, v.Round, v.Vote}
				waiting[m] = append(waiting[m], len(all))
				all = append(all, delivery{message: m, sent: true, sentAt: began + v.AtMS, sentRank: sentRank(v.Heard), count: 1})
			}
		}
	}
	for i := range e.records {
		r, began := &e.records[i], e.began(i).Sub(start).Milliseconds()
		for n, v := range r.Votes {
			m := message{v.From, r.Server, v.State, v.Round, v.Vote}
			at := len(all)
			if w := waiting[m]; len(w) > 0 {
				at, waiting[m] = w[0], w[1:]
			} else {
				all = append(all, delivery{message: m, count: 1})
			}
			d := &all[at]
			d.heard, d.heardAt, d.heardRank, d.verdict = true, began+v.AtMS, heardRank(n), v.Verdict
		}
	}
	return once(all)
}

// at returns when a message was sent or, if this is not known, when it was heard.
func (d *delivery) at() int64 {
	if d.sent {
		return d.sentAt
	}
	return d.heardAt
}

// once keeps one of several equal messages: the first that was heard or, if none was heard, the
// first that was sent. The count of this message includes the others.
func once(all []delivery) []delivery {
	slices.SortStableFunc(all, func(a, b delivery) int {
		return cmp.Or(compareBool(b.heard, a.heard), cmp.Compare(a.at(), b.at()))
	})
	first := map[message]int{}
	var out []delivery
	for _, d := range all {
		if i, ok := first[d.message]; ok {
			out[i].count++
			continue
		}
		first[d.message] = len(out)
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b delivery) int {
		return cmp.Or(cmp.Compare(a.at(), b.at()), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
