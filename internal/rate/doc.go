// Package rate holds the arithmetic of limits on what clients may do in a given time. It
// reads no clock and has no lock: callers pass the time, in ns of a monotonic clock, and
// guard what they share.
//
//   - [Bucket] enforces a [Limit] by delays.
//   - [Connections] admits or refuses new connections as ZooKeeper's connection throttle
//     does.
//   - [Failures] counts the failed logins of one client address, and says how long its
//     next login must wait.
//   - [Table] keeps one value for each client address, and a bounded number of them.
package rate
