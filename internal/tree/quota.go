package tree

import (
	"strconv"
	"strings"

	"bellwether/wire"
)

// A quota on /p is two znodes that clients make: /zookeeper/quota/p/zookeeper_limits
// holds the limits, …/zookeeper_stats the usage of /p and everything below,
// which the tree rewrites in place, without a transaction or a change of stat.
const (
	limitsName = "zookeeper_limits"
	statsName  = "zookeeper_stats"
)

// quota is what either of the two holds; -1 is unlimited, or not given.
type quota struct{ count, bytes, countHard, bytesHard int64 }

// parseQuota reads text such as count=1,bytes=2=;byteHardLimit=3;countHardLimit=-1,
// whose odd equals sign keeps old readers working. It is as strict as ZooKeeper:
// commas and semicolons separate pairs; a pair is a key, an equals sign and a
// decimal number, where an empty one stands for -1; what stands behind a further
// equals sign and keys that are not known are ignored. False: the text is
// something else.
func parseQuota(text string) (quota, bool) {
	q := quota{-1, -1, -1, -1}
	pairs := strings.FieldsFunc(text, isQuotaSeparator)
	if len(pairs) > 0 && isQuotaSeparator(rune(text[0])) {
		return q, false
	}
	for _, pair := range pairs {
		parts := strings.Split(strings.TrimRight(pair, "="), "=")
		if len(parts) < 2 {
			return q, false
		}
		n := int64(-1)
		if parts[1] != "" {
			var err error
			if n, err = strconv.ParseInt(parts[1], 10, 64); err != nil {
				return q, false
			}
		}
		q.set(parts[0], n)
	}
	return q, true
}

func isQuotaSeparator(r rune) bool { return r == ',' || r == ';' }

// set gives the field of a key its value; other keys mean nothing.
func (q *quota) set(key string, n int64) {
	switch key {
	case "count":
		q.count = n
	case "bytes":
		q.bytes = n
	case "countHardLimit":
		q.countHard = n
	case "byteHardLimit":
		q.bytesHard = n
	}
}

// quotaFor finds the quota that a path counts for: that of the longest
// prefix with limits. The root has none.
func (t *Tree) quotaFor(path string) (q *node, prefix string) {
	if t.quotas == nil || t.quotas.kids == nil || len(path) < 2 {
		return nil, ""
	}
	n, end := t.quotas, 0
	for rest := path[1:]; ; {
		name, more, found := strings.Cut(rest, "/")
		if n = n.kids.get(name, t.key.name(name)); n == nil {
			return q, prefix
		}
		end += 1 + len(name)
		if t.child(n, limitsName) != nil {
			q, prefix = n, path[:end]
		}
		if !found {
			return q, prefix
		}
		rest = more
	}
}

func (t *Tree) child(n *node, name string) *node { return n.kids.get(name, t.key.name(name)) }

// account adds to the usage that a path counts for.
func (t *Tree) account(path string, count, bytes int64) {
	if count == 0 && bytes == 0 {
		return
	}
	q, prefix := t.quotaFor(path)
	if q == nil {
		return
	}
	stats := t.child(q, statsName)
	if stats == nil {
		return
	}
	before, ok := parseQuota(string(stats.data()))
	if !ok || before.count < 0 || before.bytes < 0 {
		t.recount(stats, prefix) // a client wrote something else over it
		return
	}
	after := quota{count: before.count + count, bytes: before.bytes + bytes}
	t.writeUsage(stats, after)
	limits, _ := parseQuota(string(t.child(q, limitsName).data()))
	t.crossed(prefix, false, limits.count, limits.countHard, before.count, after.count)
	t.crossed(prefix, true, limits.bytes, limits.bytesHard, before.bytes, after.bytes)
}

// crossed reports a limit once, when the usage passes it. A hard limit
// stands in for a soft one.
func (t *Tree) crossed(prefix string, bytes bool, soft, hard, before, after int64) {
	limit := soft
	if hard >= 0 {
		limit = hard
	}
	if limit >= 0 && before <= limit && after > limit {
		t.happen(QuotaExceeded{Path: prefix, Bytes: bytes, Hard: hard >= 0, Used: after, Limit: limit})
	}
}

func (t *Tree) writeUsage(stats *node, q quota) {
	text := "count=" + strconv.FormatInt(q.count, 10) + ",bytes=" + strconv.FormatInt(q.bytes, 10)
	t.bytes += int64(len(text) - stats.dataLen())
	stats.rewrite([]byte(text))
}

// recount writes the usage of a prefix, counted anew.
func (t *Tree) recount(stats *node, prefix string) {
	var q quota
	if top := t.find(prefix); top != nil {
		walk(top, func(n *node) {
			q.count++
			q.bytes += int64(n.dataLen())
		})
	}
	t.writeUsage(stats, q)
}

// walk calls visit for a znode and everything below it, in no order.
func walk(top *node, visit func(*node)) {
	stack := []*node{top}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		visit(n)
		n.kids.each(func(kid *node) { stack = append(stack, kid) })
	}
}

// quotaCreated: a new stats znode gets the usage, whatever it was made with.
func (t *Tree) quotaCreated(path string, n *node) {
	rest, ok := strings.CutPrefix(path, quotaPath)
	if !ok {
		return
	}
	if prefix, ok := strings.CutSuffix(rest, "/"+statsName); ok && prefix != "" {
		t.recount(n, prefix)
	}
}

// recountAll counts the usage of every quota that has limits, as after
// loading a snapshot.
func (t *Tree) recountAll() {
	if t.quotas == nil {
		return
	}
	walk(t.quotas, func(n *node) {
		if t.child(n, limitsName) == nil {
			return
		}
		if stats := t.child(n, statsName); stats != nil {
			t.quotaCreated(t.path(stats), stats)
		}
	})
}

// checkQuota refuses a write that would take the applied usage over a hard
// limit, where quotas are enforced. Where the limits cannot be read every write
// is refused, as at ZooKeeper, with the code of a request that cannot be decoded.
func (t *Tree) checkQuota(path string, count, bytes int64) wire.Code {
	if !t.o.EnforceQuota {
		return wire.OK
	}
	q, prefix := t.quotaFor(path)
	if q == nil {
		return wire.OK
	}
	node := t.child(q, limitsName)
	limits, ok := parseQuota(string(node.data()))
	if !ok || node.data() == nil {
		t.happen(QuotaUnreadable{Path: prefix, Limits: string(node.data())})
		return wire.ErrMarshalling
	}
	stats := t.child(q, statsName)
	if stats == nil {
		return wire.OK
	}
	used, _ := parseQuota(string(stats.data()))
	over := QuotaExceeded{Path: prefix, Hard: true, Used: used.count + count, Limit: limits.countHard}
	if count <= 0 || over.Limit < 0 || over.Used <= over.Limit {
		over = QuotaExceeded{Path: prefix, Hard: true, Bytes: true, Used: used.bytes + bytes, Limit: limits.bytesHard}
		if bytes <= 0 || over.Limit < 0 || over.Used <= over.Limit {
			return wire.OK
		}
	}
	t.happen(over)
	return wire.ErrQuotaExceeded
}
