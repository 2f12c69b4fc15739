// Package otel exports traces of Bellwether as OpenTelemetry spans. It is a separate module,
// so that the product does not depend on OpenTelemetry.
//
// [Hooks] makes a span of each call of a zk.Client. [Exporter] makes spans of the requests that
// servers have traced (requestTrace.enabled): one span for each request, and one below it for
// each stage. The spans of the server and of the leader are in one trace, to which the span
// of the client links. The id of that trace is computed from the session and the cxid, so
// client, server and leader need not tell it to each other.
//
// The command bellwether-otel asks servers for their traces and sends the spans to a
// collector, by OTLP over HTTP.
package otel
