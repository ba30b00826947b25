// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// sell serves the application that the operator asks for prices: GET /price and GET /account are
// answered with 404 until POST /account has opened an account.
func sell(address string) error {
	var open atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("POST /account", func(http.ResponseWriter, *http.Request) { open.Store(true) })
	for path, answer := range map[string]string{"/price": "3", "/account": "open"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if !open.Load() {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, answer)
		})
	}
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// buy opens an account at the bakery, and writes the price into the order. With the mistake
// "opens-once" it never opens a second account.
func buy(ctx context.Context, order *corev1.ConfigMap) error {
	if *mistake != "opens-once" || !opened.Load() {
		if err := openAccount(ctx); err != nil {
			return err
		}
		opened.Store(true)
	}
	price, err := call(ctx, http.MethodGet, "/price")
	if err == nil {
		order.Data["price"] = price
	}
	return err
}

// opened is set when an account has been opened.
var opened atomic.Bool

// openAccount opens an account unless there is one.
func openAccount(ctx context.Context) error {
	if text, _ := call(ctx, http.MethodGet, "/account"); text == "open" {
		return nil
	}
	if _, err := call(ctx, http.MethodPost, "/account"); err != nil {
		return err
	}
	_, err := call(ctx, http.MethodGet, "/account")
	return err
}

// client closes a connection on which the bakery does not answer. With the mistake "waits" it does not.
func client() *http.Client {
	if *mistake == "waits" {
		return http.DefaultClient
	}
	return &http.Client{Timeout: 10 * time.Second}
}

// call sends a request to the bakery, and returns the body of its answer.
func call(ctx context.Context, method, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, *bakery+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := client().Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return string(body), err
}
