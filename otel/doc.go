// Package otel exports traces of Bellwether as OpenTelemetry spans. It is a separate module,
// so that the product does not depend on OpenTelemetry.
//
// [Hooks] makes a span of each call of a zk.Client. [Exporter] makes spans of the requests that
// servers have traced (requestTrace.enabled): one span for each request, and one below it for
// each stage. All parts of one request are in one trace, whose id follows from session and
// cxid, although client, follower and leader do not know of each other.
//
// The command bellwether-otel asks servers for their traces and sends the spans to a
// collector, by OTLP over HTTP.
package otel
