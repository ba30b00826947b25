// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client runs sandboxes from Go: for the tests of an operator, or for
// a program that needs a control plane for a while. It is a module of its own
// that requires nothing but the standard library, so it can be imported next
// to any version of client-go. It runs on Linux, as sandboxes do,
// and compiles on other systems, where Up returns an error that wraps errors.ErrUnsupported.
//
//	func TestShop(t *testing.T) {
//		s := client.Shared(t, client.Options{Nodes: 3, Install: client.Install{Paths: []string{"config/crd"}}})
//		namespace := s.Namespace(t)
//		config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
//
// Outside of tests, a program calls Up and Down.
//
// The files:
//
//	testing.go   a sandbox of a test, or of all tests of a package; what a test cleans up
//	sandbox.go   start a sandbox, or use one that runs; its commands, kubectl included
//	options.go   how a sandbox is started
//	install.go   install CustomResourceDefinitions and other manifests
//	webhooks.go  a place and a certificate for a server of webhooks
//	build.go     build the program of the sandbox, if there is none
//	status.go    the status of a sandbox and of its components
//	wait.go      wait until a condition holds
//	snapshot.go  keep all objects and put them back; wait until nothing is written
//	process.go   run a program against a sandbox: its output, signals, end
//	address.go   a free port for such a program, reserved until it is released
//	other.go     the same on other systems than Linux, where there is none
//	proxy.go     start the fault proxy and control it while it runs
//	log.go       read the fault proxy's log
//	console      run the commands of a page in a shell, and compare their output with the page
//	child        start a command that ends with the process that started it
package client
