// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package argo tests restarts of Argo's Rollouts with Argo's own controller and CRDs.
//
//	argo_test.go     what users notice
//	rollout_test.go  a Rollout, and all pods that it has
package argo
