// Package realservers holds tests against real inference servers. They need
// more than Go and a C compiler and are therefore no part of ./...: see
// `make realservers`.
package realservers
