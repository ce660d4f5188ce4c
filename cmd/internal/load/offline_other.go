//go:build !linux

package main

import "errors"

func withoutNetwork() (done bool, err error) {
	return true, errors.New("--no-network needs Linux")
}
