// Package modeltest holds tests alone: a model of servers, sessions and lost replies drives the machines of queues,
// barriers, registrations, values and tasks under faults.
package modeltest
