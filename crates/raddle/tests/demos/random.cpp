// Random numbers from everywhere.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <sys/random.h>
#include <thread>
int main() {
    std::random_device standard, device("/dev/urandom");
    unsigned char bytes[4];
    unsigned from_thread = 0;
    std::thread thread([&] { from_thread = standard(); });
    thread.join();
    arc4random_buf(bytes, sizeof bytes);
    std::printf("%u %u %u %u %u %02x%02x\n", standard(), device(), from_thread, arc4random(), arc4random_uniform(1000), bytes[0], bytes[1]);
    std::string line;
    while (std::getline(std::cin, line)) std::cout << "line " << line << std::endl;
    return 0;
}
