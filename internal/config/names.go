package config

import (
	"sort"
	"strings"
)

// misnamed maps names that appear in ZooKeeper's manual or in common files, but have no
// effect, to the names that do.
var misnamed = map[string]string{
	"connectionMaxTokens":         "connection_throttle_tokens",
	"connectionTokenFillTime":     "connection_throttle_fill_time",
	"connectionTokenFillCount":    "connection_throttle_fill_count",
	"connectionFreezeTime":        "connection_throttle_freeze_time",
	"connectionDropIncrease":      "connection_throttle_drop_increase",
	"connectionDropDecrease":      "connection_throttle_drop_decrease",
	"connectionDecreaseRatio":     "connection_throttle_decrease_ratio",
	"requestThrottleLimit":        "request_throttle_max_requests",
	"requestThrottleStallTime":    "request_throttle_stall_time",
	"requestThrottleDropStale":    "request_throttle_drop_stale",
	"requestStaleLatencyCheck":    "request_stale_latency_check",
	"requestStaleConnectionCheck": "request_stale_connection_check",
	"throttledOpWaitTime":         "throttled_op_wait_time",
	"maxConcurrentSnapSyncs":      "leader.maxConcurrentSnapSyncs",
	"maxConcurrentDiffSyncs":      "leader.maxConcurrentDiffSyncs",
	"maxTimeToWaitForEpoch":       "leader.maxTimeToWaitForEpoch",
	"advancedFlowControlEnabled":  "netty.advancedFlowControl.enabled",
	"outstandingHandshake.limit":  "netty.server.outstandingHandshake.limit",
	"purgeInterval":               "autopurge.purgeInterval",
	"snapRetainCount":             "autopurge.snapRetainCount",
	"superDigest":                 "DigestAuthenticationProvider.superDigest",
}

// noEffect returns why a line of zoo.cfg with this key has no effect in ZooKeeper, and
// which name would have one.
func noEffect(name string) string {
	if rest, ok := strings.CutPrefix(name, "zookeeper."); ok {
		hint := suggestion(rest)
		if k := find(rest); k != nil && k.kind&(parsed|system) != 0 {
			hint = "; the key is " + rest
		} else if right := misnamed[rest]; right != "" {
			hint = "; the key is " + right
		}
		return "has no effect: in zoo.cfg it becomes the property zookeeper." + name + hint
	}
	if k := find(name); k != nil && k.kind&java != 0 {
		return "has no effect in zoo.cfg, where it becomes the property zookeeper." + name + "; give it as -D" + name + "=VALUE in JVMFLAGS"
	}
	if right := misnamed[name]; right != "" {
		return "has no effect: the correct key is " + right
	}
	return "is ignored: ZooKeeper has no such key" + suggestion(name)
}

// suggestion names the keys that differ from name only in case or punctuation.
func suggestion(name string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer(".", "", "_", "", "-", "").Replace(s))
	}
	var near []string
	for known, k := range byName {
		if k.form != pattern && known != name && plain(known) == plain(name) {
			near = append(near, known)
		}
	}
	if len(near) == 0 {
		return ""
	}
	sort.Strings(near)
	return "; did you mean " + strings.Join(near, " or ") + "?"
}
