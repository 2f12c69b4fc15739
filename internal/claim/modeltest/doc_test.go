// Package modeltest contains only tests. A model of servers, sessions and lost replies drives the machines
// of queues, barriers, registrations, values and tasks under faults.
package modeltest
