// Package quota reads and writes the text of a quota's two znodes. A quota on /p is
// made by clients: /zookeeper/quota/p/zookeeper_limits holds its limits, and
// /zookeeper/quota/p/zookeeper_stats what /p and everything below it use. The text is
// that of Apache ZooKeeper; read quota.go, which is all there is.
package quota

import (
	"fmt"
	"strconv"
	"strings"
)

// Where a quota is stored: at Root, the path it counts for, a slash and one of the
// two names.
const (
	Root       = "/zookeeper/quota"
	LimitsName = "zookeeper_limits"
	StatsName  = "zookeeper_stats"
)

// Quota holds what either of the two znodes holds. Its fields are numbers of znodes and
// bytes of data; -1 is no limit, or not given. The hard limits are those that a
// server can enforce.
type Quota struct{ Count, Bytes, HardCount, HardBytes int64 }

// None returns the quota without any limit.
func None() Quota { return Quota{-1, -1, -1, -1} }

// Parse reads text such as count=1,bytes=2=;byteHardLimit=3;countHardLimit=-1,
// whose odd equals sign keeps old readers working. It is as strict as ZooKeeper:
// commas and semicolons separate pairs; a pair is a key, an equals sign and a
// decimal number, where an empty one stands for -1; text after a further equals
// sign and unknown keys are ignored. If the text is something else, Parse returns
// what it has read up to there, and false.
func Parse(text string) (Quota, bool) {
	q := None()
	pairs := strings.FieldsFunc(text, isSeparator)
	if len(pairs) > 0 && isSeparator(rune(text[0])) {
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

func isSeparator(r rune) bool { return r == ',' || r == ';' }

// set gives the field of a key its value; it ignores unknown keys.
func (q *Quota) set(key string, n int64) {
	switch key {
	case "count":
		q.Count = n
	case "bytes":
		q.Bytes = n
	case "countHardLimit":
		q.HardCount = n
	case "byteHardLimit":
		q.HardBytes = n
	}
}

// Limits returns the text of a limits znode, in the form that servers since 3.7
// write and older ones still read.
func (q Quota) Limits() string {
	return fmt.Sprintf("count=%d,bytes=%d=;byteHardLimit=%d;countHardLimit=%d", q.Count, q.Bytes, q.HardBytes, q.HardCount)
}

// Usage returns the text of a stats znode.
func (q Quota) Usage() string {
	return "count=" + strconv.FormatInt(q.Count, 10) + ",bytes=" + strconv.FormatInt(q.Bytes, 10)
}
