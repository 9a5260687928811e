//go:build !cgo

package main

const hasCgo = false
