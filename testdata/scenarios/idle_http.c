/* The twin of abba that is ready: an HTTP server whose main thread waits in
 * poll, with N idle threads (default 131) in condition waits. It prints
 * "ready PORT", answers GET /health with 200 "ok" and everything else with
 * 404, one request for each connection.
 *
 * usage: idle_http [N]
 */
#include "scenario.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

static void answer(int c)
{
	char request[4096];
	size_t have = 0;
	struct pollfd in = { .fd = c, .events = POLLIN };
	/* The head of a request ends with an empty line; a client gets 5 s. */
	while (have < sizeof request - 1) {
		if (poll(&in, 1, 5000) <= 0)
			return;
		ssize_t n = read(c, request + have, sizeof request - 1 - have);
		if (n <= 0)
			return;
		have += n;
		request[have] = 0;
		if (strstr(request, "\r\n\r\n") != NULL)
			break;
	}
	int found = strncmp(request, "GET /health ", 12) == 0;
	const char *status = found ? "200 OK" : "404 Not Found";
	const char *body = found ? "ok" : "not found";
	char response[256];
	int n = snprintf(response, sizeof response,
			 "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
			 status, strlen(body), body);
	if (write(c, response, n) != n)
		return;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	start_idle(argc > 1 ? atoi(argv[1]) : 131);

	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof addr;
	if (s < 0 || bind(s, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(s, 16) != 0 ||
	    getsockname(s, (struct sockaddr *)&addr, &len) != 0) {
		perror("listen");
		return 1;
	}
	printf("ready %d\n", ntohs(addr.sin_port));
	fflush(stdout);

	struct pollfd fds[2] = { { .fd = s, .events = POLLIN }, { .fd = 0, .events = POLLIN } };
	while (poll(fds, 2, 300 * 1000) > 0) {
		char byte;
		if (fds[1].revents != 0 && read(0, &byte, 1) <= 0)
			break;
		if ((fds[0].revents & POLLIN) == 0)
			continue;
		int c = accept4(s, NULL, NULL, SOCK_CLOEXEC);
		if (c < 0)
			continue;
		answer(c);
		close(c);
	}
	_exit(0);
}
