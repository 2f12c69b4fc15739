package shadow

import (
	"cmp"
	"slices"
	"strings"

	"bellwether/wire"
)

// Result is the result of a check.
type Result int

// The results.
const (
	Equal Result = iota
	Differs
	Unsure    // the observer's answer decides nothing, for the reason in the verdict
	Behind    // the observer has not reached the zxid: ask again
	AskParent // send Check.Parent, and judge with Check.JudgeParent
)

// Verdict is the result of a check with its details.
type Verdict struct {
	Result      Result
	Reason      Reason       // of Unsure
	Differences []Difference // of Differs
	At          wire.Zxid    // the zxid of the observer's answer
}

// Difference is a field for which the two servers have different values.
type Difference struct {
	Field    string `json:"field"`
	Old      string `json:"old"`
	Observer string `json:"observer"`
}

// Request returns the body of the read that the check sends to the observer. It sets no watch.
func (c *Check) Request() wire.Record { return c.request(false) }

// WithWatch is [Check.Request] for a read that sets a watch.
func (c *Check) WithWatch() wire.Record { return c.request(true) }

func (c *Check) request(watch bool) wire.Record {
	switch c.Ask {
	case wire.OpGetACL, wire.OpGetAllChildrenNumber:
		return &wire.PathRequest{Path: c.Path}
	case wire.OpWhoAmI:
		return nil
	}
	return &wire.PathWatchRequest{Path: c.Path, Watch: watch}
}

// AsSuper returns a check of the same claim in a session of the super user, who may read everything, and whether this can
// decide what the verdict left undecided.
func (c *Check) AsSuper(v Verdict) (Check, bool) {
	s := *c
	s.Weak, s.super = false, true
	refused := v.Reason == UnsureRights || v.Reason == UnsureUnreadable || v.Reason == UnsureExists
	return s, v.Result == Unsure && refused && c.Ask != wire.OpWhoAmI && c.want.code != wire.ErrNoAuth
}

// Parent returns the check that follows the result AskParent.
func (c *Check) Parent() Check {
	return Check{Path: parentOf(c.Path), Zxid: c.Zxid, Ask: wire.OpExists}
}

// JudgeParent judges a missing znode by the parent. If the parent's children have not changed since the zxid of
// the reply, the znode was missing then already.
func (c *Check) JudgeParent(h wire.ReplyHeader, answer []byte) Verdict {
	var r wire.StatResponse
	if h.Err != wire.OK || wire.Decode(answer, &r) != nil || !childPart.settled(&r.Stat, c.Zxid, h.Zxid) {
		return Verdict{Result: Unsure, Reason: UnsureChanged, At: h.Zxid}
	}
	v := judge{c: c, at: h.Zxid}
	v.differs("znode", "exists", wire.ErrNoNode.Error())
	return v.verdict()
}

// Judge compares the observer's answer with the reply.
func (c *Check) Judge(h wire.ReplyHeader, answer []byte) Verdict {
	v := judge{c: c, at: h.Zxid}
	switch {
	case ofSession(h.Err):
		return Verdict{Result: Unsure, Reason: UnsureRefused, At: h.Zxid}
	case c.Ask == wire.OpWhoAmI && c.Weak:
		return Verdict{Result: Unsure, Reason: UnsureRights, At: h.Zxid}
	case c.Ask == wire.OpWhoAmI, ofRequest(h.Err), ofRequest(c.want.code):
		v.at = c.Zxid // the answer does not depend on the tree
	case h.Zxid < c.Zxid:
		// A leader without transactions in its epoch answers at counter 0 of the epoch, other servers at the last zxid.
		v.at = c.Zxid
		if v.compare(h.Err, answer); c.Zxid.Counter() == 0 && h.Zxid.Epoch() < c.Zxid.Epoch() && v.verdict().Result == Equal {
			return Verdict{Result: Equal, At: h.Zxid}
		}
		return Verdict{Result: Behind, At: h.Zxid}
	}
	v.compare(h.Err, answer)
	out := v.verdict()
	out.At = h.Zxid
	return out
}

// ofRequest reports whether an error depends on the request, not on the tree.
func ofRequest(code wire.Code) bool {
	return code != wire.OK && code != wire.ErrNoNode && code != wire.ErrNoAuth
}

// judge is one comparison.
type judge struct {
	c       *Check
	at      wire.Zxid
	unsure  Reason
	found   []Difference
	parents bool // the parent can tell more
}

func (v *judge) exact() bool { return v.at == v.c.Zxid }

func (v *judge) differs(field, old, observer string) {
	v.found = append(v.found, Difference{field, old, observer})
}

// unless notes a difference if it was certain at the zxid of the reply; otherwise the znode may have been changed since.
func (v *judge) unless(certain bool, field, old, observer string) {
	if certain && (v.exact() || !volatile(v.c.Path)) {
		v.differs(field, old, observer)
	} else {
		v.unsure = UnsureChanged
	}
}

func (v *judge) verdict() Verdict {
	switch {
	case len(v.found) > 0:
		return Verdict{Result: Differs, Differences: v.found, At: v.at}
	case v.parents:
		return Verdict{Result: AskParent, At: v.at}
	case v.unsure != "":
		return Verdict{Result: Unsure, Reason: v.unsure, At: v.at}
	}
	return Verdict{Result: Equal, At: v.at}
}

// compare compares an answer at a zxid that is not before that of the reply.
func (v *judge) compare(code wire.Code, answer []byte) {
	w := &v.c.want
	old := w.code
	if w.absent {
		old = wire.ErrNoNode
	}
	switch {
	case code == wire.OK && old == wire.ErrNoAuth:
		v.unless(v.exact(), "error", old.Error(), "none")
	case code == wire.OK && ofRequest(old):
		v.differs("error", old.Error(), "none")
	case code == wire.OK:
		v.answer(answer)
	case code == wire.ErrNoAuth && v.c.Weak && (old == wire.OK || old == wire.ErrNoAuth):
		v.unsure = UnsureRights
	case code == old:
	case ofRequest(code), ofRequest(old):
		v.differs("error", errorText(old), code.Error())
	case code == wire.ErrNoAuth && w.exists:
		v.unsure = UnsureExists
	case code == wire.ErrNoAuth && w.write:
		v.unsure = UnsureUnreadable
	case code == wire.ErrNoNode && old == wire.OK && !v.exact() && v.c.Path != "/":
		v.parents = true
	default:
		v.unless(v.exact(), "error", errorText(old), code.Error())
	}
}

func errorText(code wire.Code) string {
	if code == wire.OK {
		return "none"
	}
	return code.Error()
}

// answer compares an answer without an error.
func (v *judge) answer(answer []byte) {
	rec := newAnswer(v.c.Ask)
	if err := wire.Decode(answer, rec); err != nil {
		v.differs("reply", "a record", err.Error())
		return
	}
	var got claim
	got.says(rec)
	if got.known == allFields {
		v.znode(&got)
	}
	w := &v.c.want
	if w.count != nil && *w.count != *got.count {
		v.unless(v.exact(), "count", number(int64(*w.count), false), number(int64(*got.count), false))
	}
	if w.ids != nil {
		v.ids(*w.ids, *got.ids)
	}
}

// znode compares a znode that the observer has.
func (v *judge) znode(got *claim) {
	w, s := &v.c.want, &got.stat
	v.plausible(s)
	if w.absent {
		v.unless(identityPart.settled(s, v.c.Zxid, v.at), "znode", wire.ErrNoNode.Error(), "exists")
		return
	}
	if !identityPart.settled(s, v.c.Zxid, v.at) {
		v.unsure = UnsureChanged // deleted and created again
		return
	}
	v.stat(s)
	if w.must != nil {
		switch {
		case !w.must.part.settled(s, v.c.Zxid, v.at):
			v.unsure = UnsureChanged
		case !w.must.holds(s):
			v.differs("znode", w.must.text, w.must.shown(s))
		}
	}
	v.data(got)
	v.children(got)
	v.acl(got)
}

// plausible notes a zxid in the stat that is later than the answer.
func (v *judge) plausible(s *wire.Stat) {
	for _, f := range statFields {
		if f.hex && f.name != "ephemeralOwner" && f.get(s) > int64(v.at) {
			v.differs(f.name, "at most "+v.at.String(), number(f.get(s), true))
		}
	}
}

func (v *judge) stat(s *wire.Stat) {
	for i, f := range statFields {
		old, observer := f.get(&v.c.want.stat), f.get(s)
		if v.c.want.known&(1<<i) != 0 && old != observer {
			v.unless(f.part.settled(s, v.c.Zxid, v.at), f.name, number(old, f.hex), number(observer, f.hex))
		}
	}
}

func (v *judge) data(got *claim) {
	if old := v.c.want.data; old != nil && got.data != nil && ((*old == nil) != (*got.data == nil) || string(*old) != string(*got.data)) {
		a, b := dataTexts(*old, *got.data)
		v.unless(dataPart.settled(&got.stat, v.c.Zxid, v.at), "data", a, b)
	}
}

// children compares names as sets, because servers return them in no order.
func (v *judge) children(got *claim) {
	if v.c.want.children == nil || got.children == nil {
		return
	}
	old, observer := slices.Sorted(slices.Values(*v.c.want.children)), slices.Sorted(slices.Values(*got.children))
	if !slices.Equal(old, observer) {
		v.unless(childPart.settled(&got.stat, v.c.Zxid, v.at), "children", namesText(old, observer), namesText(observer, old))
	}
}

// acl compares access-control lists. setACL does not change a zxid, so the aversion tells whether the list can be
// compared.
func (v *judge) acl(got *claim) {
	w := &v.c.want
	if w.acl == nil || got.acl == nil {
		return
	}
	same := v.exact() || got.stat.Aversion == w.stat.Aversion
	old, observer := aclTexts(*w.acl), aclTexts(*got.acl)
	if w.write || v.c.super { // duplicates are dropped; a client without ADMIN does not see the hashes of digests
		old, observer = hashless(old, observer), hashless(observer, old)
	}
	if !slices.Equal(old, observer) {
		v.unless(same, "acl", strings.Join(old, ","), strings.Join(observer, ","))
	}
}

// ids compares identities without the addresses, which each server sees from its own side.
func (v *judge) ids(old, observer []wire.ClientInfo) {
	if a, b := idTexts(old), idTexts(observer); !slices.Equal(a, b) {
		v.differs("identities", strings.Join(a, ","), strings.Join(b, ","))
	}
}

func idTexts(all []wire.ClientInfo) []string {
	var texts []string
	for _, id := range all {
		if id.Scheme != wire.SchemeIP {
			texts = append(texts, id.Scheme+":"+id.User)
		}
	}
	slices.SortFunc(texts, cmp.Compare[string])
	return texts
}
