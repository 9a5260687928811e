// Package chat asks a server one question at a time over the OpenAI-style HTTP
// interface: one streaming chat completion (Client.Do), and the 2+2 check made
// of it (Check).
//
// The package may not have more than one request in flight, follow a redirect,
// use a proxy from the environment, read without a limit of bytes and time, or
// send the API key to any host but the base URL's. The key and other secrets
// never reach the evidence, whatever the server sends back.
//
// The verdict of a check says what the answer is worth as an answer; what that
// means for the server is for rules to say.
package chat
