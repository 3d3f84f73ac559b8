// Gives the precompiled headers of the tests a target to live in: an executable, as the tests are.
int main() {}
